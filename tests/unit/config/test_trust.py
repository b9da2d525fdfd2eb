"""A penstock.yaml of the working directory comes with the folder: it loads no code and reads no files
from elsewhere."""

import json
import re
from pathlib import Path

import pytest

from penstock.config import find_connection
from penstock.config.directories import config_dir
from penstock.config.keys import KEYS
from penstock.config.trust import LOADS_CODE, SENDS_FILES, WRITES_FILES
from penstock.errors import ConfigError

VALUES = dict.fromkeys(LOADS_CODE | WRITES_FILES, "./here.so") | dict.fromkeys(
    SENDS_FILES, "/etc/passwd"
)
FORMS = {
    "as it is": lambda name, value: f"{name}: {value}",
    "underscores": lambda name, value: f"{name.replace('.', '_')}: {value}",
}


SASL = {"bootstrap.servers": "a", "security.protocol": "sasl_ssl", "sasl.mechanisms": "OAUTHBEARER"}


def here(lines):
    body = "\n".join(f"    {line}" for line in [*(f"{k}: {v}" for k, v in SASL.items()), *lines])
    Path("penstock.yaml").write_text(f"connections:\n  c:\n{body}\n")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_key_that_loads_code_or_reaches_other_files_is_refused_there(name, form):
    here([FORMS[form](name, VALUES[name])])
    with pytest.raises(ConfigError, match="working directory") as raised:
        find_connection("c")
    assert name in str(raised.value)


def test_not_through_the_nested_mapping_either():
    here(["default.topic.config: {offset.store.path: /tmp/x}"])
    with pytest.raises(ConfigError, match=re.escape("offset.store.path")):
        find_connection("c")


def test_every_key_that_names_a_file_or_a_command_was_considered():
    """A key of a new librdkafka that ends so must be put into one of the sets, or into this list."""
    reads_only = {
        "https.ca.location",
        "sasl.kerberos.keytab",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.crl.location",
        "ssl.key.location",
        "ssl.keystore.location",
    }
    pattern = re.compile(r"(path|paths|location|file|cmd|command|keytab|library|providers|id)$")
    ids = {"client.id", "group.id", "group.instance.id", "transactional.id"}
    named = {key.name for key in KEYS if pattern.search(key.name)} - ids
    named.remove("sasl.oauthbearer.client.id")
    assert named == reads_only | set(VALUES)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_the_user_may_write_it_in_their_own_folder_and_in_the_environment(name, monkeypatch):
    own = SASL | {name: VALUES[name]}
    (config_dir() / "penstock.yaml").write_text(json.dumps({"connections": {"mine": own}}))
    assert find_connection("mine").to_config()[name] == VALUES[name]
    assert find_connection(own).to_config()[name] == VALUES[name]
    here([])
    Path("penstock.yaml").write_text("default: c\n" + Path("penstock.yaml").read_text())
    monkeypatch.setenv(f"PENSTOCK_KAFKA_{name.upper().replace('.', '_')}", VALUES[name])
    assert find_connection().to_config()[name] == VALUES[name]


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/hostname", "~/x", "link", "folder/link", "folder/../../outside"]
)
def test_a_reference_leads_nowhere_but_below_the_files_own_folder(path, tmp_path):
    (tmp_path / "outside").write_text("from elsewhere")
    Path("folder").mkdir()
    Path("link").symlink_to(tmp_path / "outside")
    Path("folder/link").symlink_to(tmp_path)
    here([f"client.id: ${{file:{path}}}"])
    with pytest.raises(ConfigError, match="below its own folder"):
        find_connection("c")


def test_a_reference_below_the_folder_is_filled_in_and_the_users_own_file_may_name_any(tmp_path):
    Path("secrets").mkdir()
    Path("secrets/id").write_text("near\n")
    (tmp_path / "far").write_text("far\n")
    here(["client.id: ${file:secrets/id}"])
    assert find_connection("c").client_id == "near"
    own = f"connections: {{mine: {{bootstrap.servers: a, client.id: '${{file:{tmp_path}/far}}'}}}}"
    (config_dir() / "penstock.yaml").write_text(own)
    assert find_connection("mine").client_id == "far"
