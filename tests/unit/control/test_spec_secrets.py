"""Secrets of definitions: never in the clear in the store, masked for people, opened for workers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pytest
import yaml

from penstock.connect import ConnectorClass, ConnectorConfig, Key, Type, connectors
from penstock.connect.connector_class import Catalog
from penstock.control.secrets.key_file import KeyFile
from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.errors import ConfigError, SetupError

SPEC = """\
# Ask ann. The old password: Comment-Secret1
name: orders   # not a secret
connection:
  bootstrap.servers: kafka:9092
  sasl.username: app
  sasl.password: Kafka-Secret1
source:
  http:
    url: https://api/x
    auth: {bearer: {token: 'Http-Secret1'}}
steps:
- sql: SELECT * FROM records   # keep
sink:
  database:
    url: postgresql://app:Url-Secret1@db/x
    password: ${env:PGPASSWORD}
    table: orders
dead_letters:
  database:
    url: postgresql://app:${file:/run/pg}@db/x
    password: |
      Block-Secret1
    table: letters
spark:
  conf: {fs.s3a.secret.key: "Spark-Secret1", "x.token": 17_171_717, retries: 3}
"""
SECRETS = [f"{kind}-Secret1" for kind in ("Comment", "Kafka", "Http", "Url", "Block", "Spark")]


@pytest.fixture
def secrets() -> SpecSecrets:
    return SpecSecrets(Sealer([token_bytes(32)]))


def test_everything_but_secrets_is_stored_as_it_was_given(secrets: SpecSecrets) -> None:
    stored = secrets.sealed("orders", SPEC)

    assert [each for each in (*SECRETS, "17_171_717") if each in stored] == []
    for line in (
        "name: orders   # not a secret",
        "    password: ${env:PGPASSWORD}",
        "    url: postgresql://app:${file:/run/pg}@db/x",
        "- sql: SELECT * FROM records   # keep",
        "# Ask ann. The old password: ********",
    ):
        assert f"{line}\n" in stored
    assert secrets.opened("orders", stored) == yaml.safe_load(SPEC)


def test_people_see_references_and_masks(secrets: SpecSecrets) -> None:
    shown = secrets.shown("orders", secrets.sealed("orders", SPEC))

    assert [each for each in (*SECRETS, "17_171_717", "sealed") if each in shown] == []
    data = yaml.safe_load(shown)
    assert data["sink"]["database"]["password"] == "${env:PGPASSWORD}"
    assert data["sink"]["database"]["url"] == "postgresql://app:********@db/x"
    assert data["connection"]["sasl.password"] == "********"
    assert data["spark"]["conf"]["retries"] == 3


def test_the_same_definition_again_is_the_same_text(secrets: SpecSecrets) -> None:
    stored = secrets.sealed("orders", SPEC)
    assert secrets.sealed("orders", SPEC) != stored
    assert secrets.sealed("orders", SPEC, stored) == stored


def test_a_masked_definition_comes_back_with_one_change(secrets: SpecSecrets) -> None:
    stored = secrets.sealed("orders", SPEC)
    edited = secrets.shown("orders", stored).replace("table: orders", "table: orders2")
    again = secrets.sealed("orders", edited, stored)
    expected = yaml.safe_load(SPEC.replace("table: orders", "table: orders2"))
    assert secrets.opened("orders", again) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {password: '********'}", "masked value at a.password, and no stored secret"),
        ("url: postgresql://u:********@db", "masked value at url"),
        ("a: ['x', '${sealed:AAAA}']", "a sealed secret at a.1; only the store may contain"),
        ("a: 'x${sealed:'", "a sealed secret at a"),
        ("a: [hunter2", "line 1: not YAML"),
    ],
)
def test_what_is_refused(secrets: SpecSecrets, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        secrets.sealed("d", text)
    assert "hunter2" not in str(refused.value)


CALLS = """\
steps:
- call: {url: https://one/x, headers: [{name: X-Key, value: 1}], password: One-Secret1}
- log: hello
- call: {url: https://two/x, headers: [{name: X-Key, value: 1}], password: Two-Secret1}
- call: {url: 'https://app:Three-Secret1@three/x', token: Three-Token1}
"""


def _edited(secrets: SpecSecrets, text: str, edit: Callable[[list[Any]], Any]) -> Any:
    """Return the list `steps` after a person has read the text, edited it and given it back."""
    stored = secrets.sealed("d", text)
    data = yaml.safe_load(secrets.shown("d", stored))
    edit(data["steps"])
    return secrets.opened("d", secrets.sealed("d", yaml.safe_dump(data), stored))["steps"]


def test_an_element_of_a_list_keeps_its_secret_where_its_place_changes(
    secrets: SpecSecrets,
) -> None:
    one, log, two, three = yaml.safe_load(CALLS)["steps"]

    assert _edited(secrets, CALLS, lambda steps: steps.pop(0)) == [log, two, three]
    assert _edited(secrets, CALLS, lambda steps: steps.reverse()) == [three, two, log, one]
    assert _edited(secrets, CALLS, lambda steps: steps.insert(0, log)) == [
        log,
        one,
        log,
        two,
        three,
    ]
    assert _edited(secrets, CALLS, lambda steps: steps.append(steps[2])) == [
        one,
        log,
        two,
        three,
        two,
    ]
    assert _edited(secrets, CALLS, lambda steps: steps[1].update(log="bye")) == [
        one,
        {"log": "bye"},
        two,
        three,
    ]


def test_another_secret_of_an_element_may_be_given(secrets: SpecSecrets) -> None:
    text = "steps: [{url: u, password: One-Secret1, token: One-Token1}, {url: v, password: Two-Secret1}]"

    steps = _edited(secrets, text, lambda steps: steps[0].update(password="New-Secret1"))

    assert steps[0] == {"url": "u", "password": "New-Secret1", "token": "One-Token1"}


@pytest.mark.parametrize(
    "edit",
    [
        lambda steps: steps[0]["call"].update(url="https://evil/x"),
        lambda steps: steps[0]["call"].update(user="more"),
        lambda steps: steps[0]["call"]["headers"].clear(),
        lambda steps: steps[0]["call"]["headers"].append({"name": "Y", "value": 1}),
        lambda steps: steps[2]["call"].update(url=steps[3]["call"]["url"]),
        # The address has a secret, too.
        lambda steps: steps[3]["call"].update(url="https://app:********@evil/x"),
        lambda steps: steps[3]["call"].update(url="https://app:New-Secret1@evil/x"),
        lambda steps: steps[3]["call"].update(url="https://evil/x"),
        lambda steps: steps.append({"call": {"url": "https://four/x", "password": "********"}}),
    ],
)
def test_an_element_of_a_list_that_became_another_one_needs_its_secret_again(
    secrets: SpecSecrets, edit: Callable[[list[Any]], Any]
) -> None:
    with pytest.raises(
        ConfigError, match=r"masked value at steps\.\d.*give the secret again"
    ) as error:
        _edited(secrets, CALLS, edit)
    assert "Secret1" not in str(error.value)


def test_the_only_element_of_a_list_needs_its_secret_again_where_its_url_changes(
    secrets: SpecSecrets,
) -> None:
    text = "steps: [{call: {url: https://one/x, password: One-Secret1}}]"
    with pytest.raises(ConfigError, match="give the secret again"):
        _edited(secrets, text, lambda steps: steps[0]["call"].update(url="https://evil/x"))


@pytest.mark.parametrize(
    "text",
    [
        "steps: [{password: One-Secret1}, {password: Two-Secret1}, {log: x}]",
        "steps: [{tokens: [One-Secret1, Two-Secret1]}]",
        "steps: [{url: u, tokens: [One-Secret1, Two-Secret1]}, {url: v}]",
    ],
)
def test_elements_that_look_alike_keep_their_secrets_only_in_an_unchanged_list(
    secrets: SpecSecrets, text: str
) -> None:
    stored = secrets.sealed("d", text)
    assert secrets.sealed("d", secrets.shown("d", stored), stored) == stored

    def shorten(steps: list[Any]) -> None:
        steps[0].get("tokens", steps).pop(0)

    with pytest.raises(ConfigError, match="give the secret again"):
        _edited(secrets, text, shorten)


def test_an_element_that_an_alias_makes_another_one_needs_its_secret_again(
    secrets: SpecSecrets,
) -> None:
    text = "at: &at {url: https://one/x}\nsteps:\n- {<<: *at, password: One-Secret1}\n"
    stored = secrets.sealed("d", text)
    shown = secrets.shown("d", stored)

    assert secrets.sealed("d", shown, stored) == stored
    with pytest.raises(ConfigError, match=r"masked value at steps\.0"):
        secrets.sealed("d", shown.replace("one", "evil"), stored)


@pytest.mark.parametrize(
    "text",
    [
        "password: ''",
        "password: null",
        "password:",
        "password: true",
        "password: ${file:/run/secrets/pg}",
        "authorization: Bearer ${env:TOKEN}",
        "url: postgresql://app@db/x",
        "key: id",
        "",
        "just a text",
        "a: &a [*a]",
    ],
)
def test_what_is_not_a_secret(secrets: SpecSecrets, text: str) -> None:
    assert secrets.sealed("d", text) == text


@pytest.mark.parametrize(
    "text",
    [
        "password: Plain-Secret1",
        "{password: 'Plain-Secret1'}",
        'password: "Plain-Secret1"  # x',
        "password: !!str Plain-Secret1",
        "password: >-\n  Plain-Secret1\nnext: 1",
        "password: |+\n  Plain-Secret1\n\n\nnext: 1",
        "a: &x Plain-Secret1\npassword: *x\nb: *x",
        "x: &x {password: Plain-Secret1}\ny:\n  <<: *x\n  z: 1",
        "tokens: [Plain-Secret1, {deep: Plain-Secret1}]",
        "credentials: {user: Plain-Secret1}",
        "password: ${env:X:-Plain-Secret1}",
        "password: Plain-Secret1\nnote: it is Plain-Secret1 indeed",
        "password: Plain-Secret1 # Plain-Secret1",
        "a: -----BEGIN PRIVATE KEY-----Plain-Secret1-----END PRIVATE KEY-----",
        "a: {jaas: 'x required password=\"Plain-Secret1\";'}",
        "password: 'Plain-Secret1 \u00e9\u20ac\U0001f600'",
        '{\n  "password": "Plain-Secret1",\n  "n": 1\n}',
    ],
)
def test_a_secret_in_any_form_of_yaml(secrets: SpecSecrets, text: str) -> None:
    stored = secrets.sealed("d", text)
    assert "Plain-Secret1" not in stored
    assert "Plain-Secret1" not in secrets.shown("d", stored)
    assert secrets.opened("d", stored) == yaml.safe_load(text)
    assert secrets.sealed("d", text, stored) == stored


def test_a_document_that_grows_by_aliases_takes_no_time(secrets: SpecSecrets) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    stored = secrets.sealed("d", "\n".join([*lines, "password: Plain-Secret1"]))
    assert "Plain-Secret1" not in stored


def test_a_sealed_value_belongs_to_its_deployment(secrets: SpecSecrets) -> None:
    stored = secrets.sealed("orders", SPEC)
    with pytest.raises(ConfigError, match="a secret of 'other' cannot be decrypted"):
        secrets.opened("other", stored)
    broken = stored.replace("${sealed:", "${sealed:AAAA", 1)
    with pytest.raises(SetupError, match="encrypted with a key that is not in the key file"):
        secrets.opened("orders", broken)


def test_no_byte_of_the_store_has_a_secret(store: ControlStore, tmp_path: Path) -> None:
    spec = store.secrets.sealed("orders", SPEC)
    store.deployments.put("orders", Kind.PIPELINE, spec, by="ann")
    again = store.secrets.sealed("orders", SPEC.replace("table: orders", "table: more"), spec)
    store.deployments.put("orders", Kind.PIPELINE, again, by="ann")
    store.audit.add("ann", "put", "orders", spec=yaml.safe_load(SPEC))
    store.events.add("orders", "state", "cannot log in with password=Kafka-Secret1")
    lease = store.leases.claim("orders", "w")
    assert lease
    store.leases.release(
        "orders", "w", lease.token, "FAILED", "no: postgresql://app:Url-Secret1@db"
    )
    content = b"".join(file.read_bytes() for file in tmp_path.glob("control.sqlite*"))
    assert [each for each in SECRETS if each.encode() in content] == []
    assert b"PGPASSWORD" in content


def test_keys_are_rotated(store: ControlStore, tmp_path: Path) -> None:
    for text in (SPEC, SPEC + "every: 1s\n"):
        store.deployments.put(
            "orders", Kind.PIPELINE, store.secrets.sealed("orders", text), by="ann"
        )
    for value in (store.secrets.sealed_record("orders", b"\xff"), None):
        store.replays.add("orders", {"all": True}, value, by="ann")
    keys = KeyFile(tmp_path / "keys")
    assert len(keys.rotate()) == 2
    place = tmp_path / "control.sqlite"
    rotated = ControlStore.at(place, keys.path)
    # The newest, both generations, and the value of a replay.
    assert (rotated.reseal(), rotated.reseal()) == (4, 0)
    keys.keep_newest()
    newest = ControlStore.at(place, keys.path)
    for row in newest.deployments.history("orders"):
        assert newest.secrets.opened("orders", row.spec)["connection"]["sasl.username"] == "app"
    values = [row.value for row in newest.replays.before("orders") if row.value]
    assert [newest.secrets.opened_record("orders", value) for value in values] == [b"\xff"]
    with pytest.raises(SetupError, match="a key that is not in the key file"):
        store.secrets.opened("orders", newest.deployments.find("orders").spec)
    for opened in (rotated, newest):
        opened.close()


def test_the_key_file_is_private(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "new" / "keys")
    with pytest.raises(SetupError, match=r"cannot be read: .*keys: No such file"):
        keys.read()
    (key,) = keys.create()
    assert (len(key), keys.path.stat().st_mode & 0o777) == (32, 0o600)
    assert keys.create() == [key]
    for mode in (0o640, 0o604, 0o660):
        keys.path.chmod(mode)
        with pytest.raises(SetupError, match="can be read by others, and it opens all stored"):
            keys.create()
    assert list(keys.path.parent.iterdir()) == [keys.path]


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"short\n", b"\xff\xfe", b"A" * 44])
def test_a_broken_key_file_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="is not a file of keys"):
        KeyFile(path).create()
    assert path.read_bytes() == content


def test_a_value_whose_key_is_lost_is_shown_as_the_mask_and_can_be_given_again(
    secrets: SpecSecrets,
) -> None:
    text = "a: {password: hunter-2, number: 1}\n"
    stored = SpecSecrets(Sealer([token_bytes(32)])).sealed("d", text)

    assert secrets.shown("d", stored) == 'a: {password: "********", number: 1}\n'
    again = secrets.sealed("d", text, stored)
    assert secrets.opened("d", again) == yaml.safe_load(text)
    with pytest.raises(ConfigError, match="no stored secret is shown like that there; give the"):
        secrets.sealed("d", secrets.shown("d", stored), stored)


def test_lost_keys_are_not_replaced_by_others_while_the_store_has_secrets(
    store: ControlStore, tmp_path: Path
) -> None:
    place, keys = tmp_path / "control.sqlite", tmp_path / "lost"
    ControlStore.at(place, keys).close()  # nothing is encrypted so far
    keys.unlink()
    text = "name: orders\nsource: {kafka: t}\nsink: {database: {password: hunter2, table: t}}\n"
    store.deployments.put("orders", Kind.PIPELINE, store.secrets.sealed("orders", text), by="ann")

    with pytest.raises(SetupError, match=r"keys .*lost is missing.*as those of 'orders'.*openssl"):
        ControlStore.at(place, keys)
    assert not keys.exists()

    keys.touch(mode=0o600)
    keys.write_bytes(b64encode(token_bytes(32)) + b"\n")  # as openssl writes it
    with ControlStore.at(place, keys) as again:
        stored = again.deployments.find("orders").spec
        assert "********" in again.secrets.shown("orders", stored)
        sealed = again.secrets.sealed("orders", text, stored)
        assert again.secrets.opened("orders", sealed)["sink"]["database"]["password"] == "hunter2"


def test_passwords_of_connectors_of_other_packages_are_secrets_whatever_their_name(
    secrets: SpecSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Vault(ConnectorClass):
        names = ("com.acme.VaultConnector",)
        kind = "sink"
        keys = (Key("vault.pin", Type.PASSWORD),)

        def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
            return {}

    monkeypatch.setattr(connectors, "CATALOG", Catalog((Vault,)))
    text = '{"name": "out", "connector.class": "Vault", "vault.pin": "1234", "topics": "t"}'
    stored = secrets.sealed("out", text)
    assert "1234" not in stored
    assert yaml.safe_load(secrets.shown("out", stored))["vault.pin"] == "********"
    assert secrets.opened("out", stored)["vault.pin"] == "1234"
