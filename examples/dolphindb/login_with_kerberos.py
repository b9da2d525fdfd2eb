"""SASL with Kerberos: needs a librdkafka that was built with it, and says so where it was not."""

from penstock.compat import dolphindb as kafka
from penstock.errors import SetupError

producerCfg = {}
producerCfg["metadata.broker.list"] = "kafka.example.com:9094"
producerCfg["sasl.mechanisms"] = "GSSAPI"
producerCfg["security.protocol"] = "sasl_plaintext"
producerCfg["sasl.kerberos.service.name"] = "kafkaAdmin"
producerCfg["sasl.kerberos.principal"] = "client@EXAMPLE.COM"
producerCfg["sasl.kerberos.keytab"] = "/etc/client.keytab"
try:
    producer = kafka.producer(producerCfg)
except SetupError as error:
    print(error)
