import hashlib
from pathlib import Path

import pytest

from voxgate.admission.quotas import Quota
from voxgate.gateway.accounts import EVERYBODY, Account, AccountsError, Keyring

DIGEST = hashlib.sha256(b"secret").hexdigest()


def accounts(folder: Path, text: str) -> Path:
    file = folder / "accounts.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_keys_everybody_is_one_account_without_quota():
    keyring = Keyring(())
    assert keyring.open
    assert keyring.of_address("192.0.2.1") is EVERYBODY


def test_addresses_are_accounts_where_they_have_a_quota():
    keyring = Keyring((), address_quota=Quota(connections=3))
    assert keyring.of_address("192.0.2.1") == Account("address 192.0.2.1", 0, Quota(connections=3))


def test_each_key_of_the_settings_is_an_account_that_does_not_tell_the_key():
    keyring = Keyring(["secret", "other"], key_quota=Quota(utterances=5))
    holder, other = keyring.holder("secret"), keyring.holder("other")
    assert holder is not None
    assert other is not None
    assert (holder.quota, "secret" in repr(holder), holder.name == other.name) == (Quota(utterances=5), False, False)
    assert keyring.holder("wrong") is None


def test_the_file_names_accounts_and_overrides_what_all_keys_have(tmp_path: Path):
    file = accounts(tmp_path, f'[[account]]\nname = "bot"\nkey_sha256 = "{DIGEST}"\npriority = 2\nutterances = 9\n')
    keyring = Keyring((), file, key_quota=Quota(connections=4, utterances=5))
    assert keyring.holder("secret") == Account("bot", 2, Quota(connections=4, utterances=9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[account]\n", "line 1"),
        ('[[account]]\nname = "a"\n', "key_sha256"),
        ('[[account]]\nname = "a"\nkey_sha256 = "short"\n', "key_sha256"),
        (f'[[account]]\nname = "a"\nkey_sha256 = "{DIGEST}"\nrate = 3\n', "unknown field `rate`"),
        (f'[[account]]\nname = "a"\nkey_sha256 = "{DIGEST}"\ncontexts = 0\n', ">= 1"),
        (f'[[account]]\nname = "a"\nkey_sha256 = "{DIGEST}"\n' * 2, "the same name twice: a"),
        (
            f'[[account]]\nname = "a"\nkey_sha256 = "{DIGEST}"\n[[account]]\nname = "b"\nkey_sha256 = "{DIGEST}"\n',
            "the same key twice",
        ),
        (f'[[account]]\nname = ""\nkey_sha256 = "{DIGEST}"\n', "name"),
        (f'[[account]]\nname = "a"\nkey_sha256 = "{DIGEST}"\npriority = 1000\n', "<= 100"),
        (f'[[accounts]]\nname = "a"\nkey_sha256 = "{DIGEST}"\n', "unknown field `accounts`"),
        ("# all of them are gone\n", r"no \[\[account\]\] in it"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, said: str):
    with pytest.raises(AccountsError, match=said):
        Keyring((), accounts(tmp_path, text))


def test_a_file_that_is_no_text_says_so(tmp_path: Path):
    file = tmp_path / "accounts.toml"
    file.write_bytes(b'name = "\xff"')
    with pytest.raises(AccountsError, match=r"accounts.toml: .*utf-8"):
        Keyring((), file)


def test_names_may_be_in_any_script(tmp_path: Path):
    keyring = Keyring((), accounts(tmp_path, f'[[account]]\nname = "ひばり"\nkey_sha256 = "{DIGEST}"\n'))
    assert keyring.holder("secret") == Account("ひばり")


def test_keys_of_the_settings_and_of_the_file_are_both_let_in_and_no_others(tmp_path: Path):
    file = accounts(tmp_path, f'[[account]]\nname = "bot"\nkey_sha256 = "{DIGEST}"\n')
    keyring = Keyring(["other"], file)
    assert not keyring.open
    assert [keyring.holder(key) is not None for key in ("secret", "other", DIGEST, "", "\ud800")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_an_empty_key_is_refused():
    with pytest.raises(AccountsError, match="empty key"):
        Keyring(["secret", ""])


def test_a_file_that_is_missing_says_so(tmp_path: Path):
    with pytest.raises(AccountsError, match="No such file"):
        Keyring((), tmp_path / "none.toml")
