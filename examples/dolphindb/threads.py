"""Version 1.30: a job that fills a table with what a parser makes of seismic data, and its end."""

from datetime import datetime, timedelta

from here import BEGINNING, BROKERS, new_topic, unique, until

from penstock.compat import dolphindb as kafka

test = new_topic("test")
consumer = kafka.consumer({"metadata.broker.list": BROKERS, "group.id": unique()})
kafka.subscribe(consumer, [test])
tab = kafka.table(["id", "time", "value"], ["SYMBOL", "TIMESTAMP", "INT"])


def parse(value):
    """In the place of mseed::parse: a station, when it began, and a sample each millisecond."""
    station, began, *samples = value.split(",")
    start = datetime.fromisoformat(began)
    return [
        (station, start + timedelta(milliseconds=number), int(sample))
        for number, sample in enumerate(samples)
    ]


conn = kafka.createSubJob(consumer, tab, parse, "test:0:get mseed data")
producer = kafka.producer({"metadata.broker.list": BROKERS})
kafka.produce(producer, test, "1", "XFDSN:NZ_AH1,2022-01-01T00:00:00,10,11,12", "PLAIN")
until(lambda: len(tab) == 3, BEGINNING)
print(tab.to_pandas().to_string(index=False))
print(list(kafka.getJobStat()["actionName"]))
kafka.cancelSubJob(conn)
print(list(kafka.getJobStat()["actionName"]))
