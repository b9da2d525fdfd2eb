"""Version 1.30: partitions by hand, and every kind of offset."""

from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

test = new_topic("test", partitions=3)
producer = kafka.producer({"metadata.broker.list": BROKERS})
consumer = kafka.consumer({"metadata.broker.list": BROKERS, "group.id": unique()})
kafka.setConsumerTime(consumer, PATIENCE)

topics, partitions, offsets = [test], [0], [0]
kafka.unassign(consumer)
kafka.assign(consumer, topics, partitions, offsets)

kafka.produce(producer, test, "1", "producer1:i'm producer", False, 0)
kafka.produce(producer, test, "2", "I am a producer", False, 0)
kafka.produce(producer, test, "3", 10086, False, 0)
kafka.produce(producer, test, "4", 123.456, False, 0)
for _ in range(4):
    error, message = kafka.consumerPoll(consumer)
    print(message[1], message[2])

print(kafka.getOffsetCommitted(consumer, topics, partitions, offsets).drop(columns="topic"))
print(kafka.getAssignment(consumer).drop(columns="topic"))
print(kafka.getOffset(consumer, test, 2))
print(kafka.getOffsetPosition(consumer, topics, partitions).drop(columns="topic"))
