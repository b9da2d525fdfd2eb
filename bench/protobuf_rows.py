"""Protobuf bodies to Arrow rows: the kernel in bulk, protobuf's parser with columns, MessageToDict.

`python -m bench.protobuf_rows [--bodies N] [--rounds N]`: processor time of one body, best of N.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
from google.protobuf.json_format import MessageToDict
from tests.fuzz.protobuf_messages import REPEATED, add_field, class_of, new_file

from penstock.decode.kernels.protobuf.protobuf_kernel import ProtobufBodies

MESSAGES = {
    "Flat": "int64 string double int32 .t.Side string int64 double bool string",
    "Item": "string int32 double",
    "Address": "string string int32",
    "Order": "int64 string .google.protobuf.Timestamp .t.Address .t.Item* int32* string* double",
}


def classes() -> dict[str, Any]:
    file = new_file()
    for name, types in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, type_ in enumerate(types.split(), 1):
            options = {"label": REPEATED} if type_.endswith("*") else {}
            add_field(message, type_.rstrip("*"), number, **options)
    return {name: class_of(file, name) for name in ("Flat", "Order")}


def flat(random: Random) -> dict[str, Any]:
    return {
        "f1": random.getrandbits(40),
        "f2": random.choice(["AAPL", "MSFT", "GOOG"]),
        "f3": random.random() * 100,
        "f4": random.randint(-5, 1000),
        "f5": random.randint(0, 2),
        "f6": "XNAS",
        "f7": 1_700_000_000_000 + random.getrandbits(30),
        "f8": random.choice([0, 0.5]),
        "f9": random.random() < 0.5,
        "f10": f"ACC-{random.randint(0, 99999):08}",
    }


def order(random: Random) -> dict[str, Any]:
    sku = (f"SKU{random.randint(0, 9999)}" for _ in range(random.randint(1, 5)))
    return {
        "f1": random.getrandbits(40),
        "f2": f"customer {random.randint(0, 9999)}",
        "f3": {"seconds": 1_700_000_000 + random.getrandbits(20), "nanos": random.getrandbits(29)},
        "f4": {"f1": "Main Street 5", "f2": "Springfield", "f3": random.randint(0, 99999)},
        "f5": [{"f1": each, "f2": random.randint(1, 9), "f3": random.random()} for each in sku],
        "f6": [random.randint(0, 500) for _ in range(random.randint(0, 8))],
        "f7": ["a", "bb"][: random.randint(0, 2)],
        "f8": random.random(),
    }


def best(rounds: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def measure(message: Any, bodies: pa.Array, rounds: int) -> dict[str, float]:
    """Return the seconds that each way takes for all bodies."""
    decode, raw = ProtobufBodies(message.DESCRIPTOR, message.DESCRIPTOR), bodies.to_pylist()
    bulk, parser = decode._in_bulk, decode._reference
    assert bulk(bodies).equals(parser(bodies)[0])

    def dicts() -> pa.Table:
        parsed = (message.FromString(body) for body in raw)
        return pa.Table.from_pylist([MessageToDict(each) for each in parsed])

    return {
        "in bulk": best(rounds, lambda: bulk(bodies)),
        "parser, columns": best(rounds, lambda: parser(bodies)),
        "parser alone": best(rounds, lambda: [message.FromString(body) for body in raw]),
        "MessageToDict": best(min(rounds, 2), dicts),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bodies", type=int, nargs="*", default=[64, 128, 256, 512, 8192])
    options.add_argument("--rounds", type=int, default=7)
    given, random = options.parse_args(), Random(1)
    makers = {"Flat": flat, "Order": order}
    for name, message in classes().items():
        for count in given.bodies:
            raw = [message(**makers[name](random)).SerializeToString() for _ in range(count)]
            times = measure(message, pa.array(raw, pa.binary()), given.rounds)
            shown = ", ".join(f"{way} {took / count * 1e6:.2f}" for way, took in times.items())
            print(
                f"{name}, {sum(map(len, raw)) // count} bytes, {count} bodies, microseconds: {shown}"
            )


if __name__ == "__main__":
    main()
