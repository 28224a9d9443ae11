from pathlib import Path

import pytest

from voxgate.gateway.config import Config, ConfigError, EngineConfig, describe, load


def toml(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "voxgate.toml"
    file.write_text(text)
    return file


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path):
    file = toml(tmp_path, "port = 1\nworkers = 1\nmax_contexts = 1\n")

    loaded = load(file, {"VOXGATE_WORKERS": "2", "VOXGATE_MAX_CONTEXTS": "2"}, {"max_contexts": "3"})

    assert loaded.config == Config(port=1, workers=2, max_contexts=3)
    assert loaded.sources["port"] == str(file)
    assert loaded.sources["workers"] == "environment"
    assert loaded.sources["max_contexts"] == "flag"
    assert loaded.sources["host"] == "default"


def test_lists_come_as_arrays_or_separated_by_commas(tmp_path: Path):
    file = toml(tmp_path, 'keys = ["a", "b"]')

    loaded = load(file, {"VOXGATE_ORIGINS": "https://a.example, https://b.example"}, {})

    assert loaded.config.keys == ("a", "b")
    assert loaded.config.origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("text", "environment", "flags", "named"),
    [
        ("prot = 1", {}, {}, "prot"),
        ("port = -1", {}, {}, "port"),
        ('port = "8080x"', {}, {}, "port"),
        ("port = 70000", {}, {}, "65535"),
        ("max_contexts = 0", {}, {}, "max_contexts"),
        ("stall_s = 0.0", {}, {}, "stall_s"),
        ("port = [", {}, {}, "voxgate.toml"),
        ("", {"VOXGATE_PROT": "1"}, {}, "VOXGATE_PROT"),
        ("", {"VOXGATE_PORT": "many"}, {}, "port"),
        ("", {}, {"log_level": "loud"}, "log_level"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    tmp_path: Path, text: str, environment: dict[str, str], flags: dict[str, str], named: str
):
    with pytest.raises(ConfigError, match=named):
        load(toml(tmp_path, text), environment, flags)


def test_an_unknown_name_is_answered_with_the_valid_ones(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"max_contexts.*port.*workers"):
        load(toml(tmp_path, "prot = 1"), {}, {})


def test_a_missing_file_is_said():
    with pytest.raises(ConfigError, match="No such file"):
        load(Path("/nonexistent/voxgate.toml"), {}, {})


def test_variables_of_the_client_commands_are_no_settings():
    assert load(None, {"VOXGATE_URL": "ws://x", "VOXGATE_KEY": "k", "HOME": "/"}, {}).config == Config()


def test_the_description_is_toml_that_loads_again_and_hides_keys(tmp_path: Path):
    described = describe(load(None, {"VOXGATE_KEYS": "secret", "VOXGATE_PORT": "99"}, {}))

    assert "secret" not in described
    assert "port = 99  # environment" in described
    assert load(toml(tmp_path, described), {}, {}).config.port == 99


@pytest.mark.parametrize("url", ["redis://:hush@host:1/0", "redis://me:hush@host", "redis://host?password=hush&db=1"])
def test_the_password_of_redis_is_not_described(url: str):
    described = describe(load(None, {"VOXGATE_REDIS_URL": url}, {}))

    assert "hush" not in described
    assert "redis://" in described


ENGINES = """
[engines.hibari]
[engines.mine]
factory = "my.engines:make"
device = "GPU-6c5ad8f9-1"
workers = 2
slots = 16
options = { weights = "/data/weights", "a key" = [1, 2.5, true] }
"""


def test_engines_are_tables_in_the_order_of_the_file(tmp_path: Path):
    engines = load(toml(tmp_path, ENGINES), {}, {}).config.engines

    assert list(engines) == ["hibari", "mine"]
    assert engines["hibari"] == EngineConfig()
    assert engines["mine"] == EngineConfig(
        factory="my.engines:make",
        device="GPU-6c5ad8f9-1",
        workers=2,
        slots=16,
        options={"weights": "/data/weights", "a key": [1, 2.5, True]},
    )


def test_the_bundled_voice_is_what_runs_when_nothing_is_said():
    assert load(None, {}, {}).config.engines == {"hibari": EngineConfig()}


@pytest.mark.parametrize(
    "text", ["hibari, mine=my.engines:make", '{"hibari": {}, "mine": {"factory": "my.engines:make"}}']
)
def test_engines_may_come_as_a_flag_or_a_variable(text: str):
    expected = {"hibari": EngineConfig(), "mine": EngineConfig(factory="my.engines:make")}

    assert load(None, {}, {"engines": text}).config.engines == expected
    assert load(None, {"VOXGATE_ENGINES": text}, {}).config.engines == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[engines.nobody]", r"nobody.*hibari.*module:callable"),
        ("[engines]", r"engines"),
        ('[engines.mine]\nfactory = "nothing"', r"engines.*factory"),
        ('[engines.mine]\nfactory = "a:b"\ndevice = "0"', r"engines.*GPU\|MIG"),
        ('[engines.mine]\nfactory = "a:b"\nslots = -1', r"engines.*>= 0.*slots"),
        ('[engines.mine]\nfactory = "a:b"\nslot = 1', r"engines.*slot"),
        ('[engines."my own"]\nfactory = "a:b"', r"engines.*my own"),
        ("[engines.hibari]\nslots = 8", r"hibari has no use for slots"),
        ('[engines.hibari]\ndevice = "GPU-1"', r"hibari has no use for device"),
    ],
)
def test_a_wrong_engine_is_refused_by_name(tmp_path: Path, text: str, named: str):
    with pytest.raises(ConfigError, match=named):
        load(toml(tmp_path, text), {}, {})


def test_engines_that_cannot_be_read_from_a_flag_are_refused():
    with pytest.raises(ConfigError, match="engines"):
        load(None, {}, {"engines": '{"hibari": '})
    with pytest.raises(ConfigError, match="engines"):
        load(None, {}, {"engines": ","})


def test_engines_are_described_as_toml_that_loads_again(tmp_path: Path):
    loaded = load(toml(tmp_path, ENGINES), {}, {})

    assert load(toml(tmp_path, describe(loaded)), {}, {}).config == loaded.config
