"""Brokers, groups and topics of a cluster, of an address and of a handle."""

from here import BROKERS, PATIENCE, new_topic, unique

from penstock.compat import dolphindb as kafka

test = new_topic("test", partitions=3)
group = unique()
producer = kafka.producer({"metadata.broker.list": BROKERS})
kafka.produce(producer, test, "key", "value", "PLAIN")
consumer = kafka.consumer(
    {"metadata.broker.list": BROKERS, "group.id": group, "auto.offset.reset": "earliest"}
)
kafka.subscribe(consumer, test)
kafka.consumerPoll(consumer, PATIENCE)

print(kafka.getMetadata(BROKERS)["brokers"])
metadata = kafka.getMetadata(consumer)
print(metadata["topics"][test])
group_info = metadata["consumerGroups"][group]
print(group_info["state"], group_info["protocolType"], group_info["protocol"], group_info["error"])
for member in group_info["members"].values():
    print(member["clientID"], member["memberAssignmentVersion"])
    print(member["partitions"].drop(columns="topic"))
