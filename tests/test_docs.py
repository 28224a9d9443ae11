"""The documents say what the code says, and their links lead somewhere."""

import re
from typing import get_args

import msgspec
import pytest

from tree import ROOT
from voxgate.gateway import wire
from voxgate.gateway.errors import CLOSE_CODES, ERROR_CODES
from voxgate.gateway.handshake import Query

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
WIRE = (ROOT / "docs" / "wire.md").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(document):
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())

    assert [link for link in links if "://" not in link and not (document.parent / link).is_file()] == []


@pytest.mark.parametrize("message", get_args(wire.AnyClientMessage | wire.AnyServerMessage), ids=lambda it: it.__name__)
def test_every_message_is_documented_with_its_fields(message):
    row = re.search(rf"^\| `{message.__struct_config__.tag}` \|(.*?)\|", WIRE, re.MULTILINE)

    assert row is not None
    assert {*re.findall(r"`(\w+)`", row[1]), "context"} == {*message.__struct_encode_fields__, "context"}


def test_every_field_of_start_is_documented_with_its_default():
    table = WIRE.split("The fields of `start`")[1].split("Text without an end")[0]
    stated = dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", table, re.MULTILINE))
    defaults = {field.name: field.default for struct in (wire.Start, Query) for field in msgspec.structs.fields(struct)}
    del defaults["context"]

    assert stated == {
        name: "the server's" if default is None else written(default) for name, default in defaults.items()
    }


def test_the_tables_of_errors_and_close_codes_are_those_of_the_code():
    errors = [f"| `{row.code}` | {row.meaning} | {row.remedy} |" for row in ERROR_CODES]
    closes = [f"| {code} | {meaning} |" for code, meaning in CLOSE_CODES]

    assert "\n".join(errors) in WIRE
    assert "\n".join(closes) in WIRE


def written(value: object) -> str:
    return "the server's" if value is None else msgspec.json.encode(value).decode().strip('"')
