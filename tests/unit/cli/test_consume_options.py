import pytest

from penstock.cli.consume import Wanted
from penstock.cli.printing import Output, Printer
from penstock.errors import ConfigError
from penstock.record import Record

RECORD = Record.of("t", 1, 2, key=b"k", value=b"v\xff", timestamp=3)


@pytest.mark.parametrize(
    ("output", "separator", "printed"),
    [
        (Output.text, None, b"v\xff\n"),
        (Output.text, ":", b"k:v\xff\n"),
        (Output.hex, None, b"76ff\n"),
        (Output.hex, " ", b"6b 76ff\n"),
        (Output.raw, None, b"v\xff"),
        (
            Output.json,
            None,
            b'{"topic":"t","partition":1,"offset":2,"timestamp":3,"key":"k",'
            b'"value_base64":"dv8=","headers":{}}\n',
        ),
    ],
)
def test_a_record_is_printed_in_the_form_asked_for(
    output: Output, separator: str | None, printed: bytes
) -> None:
    assert Printer(output, separator)(RECORD) == printed


@pytest.mark.parametrize(
    ("start", "until", "follow", "group"),
    [
        ("earliest", "end", True, None),
        ("earliest", "5", False, "g"),
        ("-5", None, False, "g"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    start: str, until: str | None, follow: bool, group: str | None
) -> None:
    with pytest.raises(ConfigError, match="--"):
        Wanted(["t"], start, until, follow, group)
