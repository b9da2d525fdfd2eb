"""The pipeline of trades-to-parquet.yaml, built in Python, with its rows in memory as a DataFrame.

The model is the same: what YAML writes as a mapping is a keyword here. The table ends with the process.
"""

import pandas as pd

import penstock

SCHEMA = "symbol string not null, price double not null, size int not null, at timestamp"

PIPELINE = penstock.Pipeline(
    name="trades-in-memory",
    source={"kafka": "trades"},
    decode={"json": {"schema": SCHEMA}},
    steps=[{"sql": "SELECT *, price * size AS amount FROM rows WHERE size > 0"}],
    sink={"memory": "trades"},
    state="out/state",
)


def amounts() -> pd.DataFrame:
    """Read what is in the topic now, and add up the amounts of each symbol."""
    with penstock.start(PIPELINE, once=True) as running:
        running.wait()
    trades = penstock.memory_table("trades").to_pandas()
    return trades.groupby("symbol")[["size", "amount"]].sum()


if __name__ == "__main__":
    print(amounts())
