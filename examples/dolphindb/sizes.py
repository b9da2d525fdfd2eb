"""Version 1.30: a vector or table that is too large for one message goes out in pieces."""

import numpy as np
import pandas as pd
from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

test = new_topic("test")
producer = kafka.producer({"metadata.broker.list": BROKERS})
consumer = kafka.consumer({"metadata.broker.list": BROKERS, "group.id": unique()})
kafka.setConsumerTime(consumer, PATIENCE)
kafka.assign(consumer, [test], [0], [0])

print(kafka.getBufferSize(), kafka.getMessageSize())
kafka.setBufferSize(100)
kafka.setMessageSize(20)

a = np.array([i % 10 for i in range(120)], dtype="int32")
kafka.produce(producer, test, "1", a, False, False, 0)
error, message = kafka.consumerPoll(consumer)
print(message[2])
pieces = [message[2] for error, message in kafka.consumerPollBatch(consumer, 59)]
print(len(pieces), sum(map(len, pieces)))

columns = {
    "a": [1, 2, 3],
    "b": ["x", "y", "z"],
    "c": [10.8, 7.6, 3.5],
    "d": ["I", "I am", "I am a"],
}
kafka.produce(producer, test, "1", pd.DataFrame(columns), False, False, 0)
error, message = kafka.consumerPoll(consumer)
print(message[2])
