"""`penstock run --master --conf`: what is given on the command line wins over the definition."""

from __future__ import annotations

import pytest

from penstock.cli.pipelines import with_spark
from penstock.errors import ConfigError
from penstock.pipeline import parse_pipeline

WRITTEN = parse_pipeline("""
name: t
source: {kafka: t}
sink: console
spark:
  master: spark://old:7077
  memory: 2g
  conf: {spark.executor.memory: 1g, spark.executor.cores: 2}
""")


def test_master_and_settings_are_replaced_and_the_rest_stays() -> None:
    given = with_spark(WRITTEN, "spark://new:7077", ["spark.executor.memory=4g"]).spark

    assert (given.master, given.memory) == ("spark://new:7077", "2g")
    assert given.conf == {"spark.executor.memory": "4g", "spark.executor.cores": 2}


def test_without_them_the_definition_is_as_written() -> None:
    assert with_spark(WRITTEN, None, []) is WRITTEN


def test_a_pipeline_that_says_nothing_of_spark_does_so_with_a_master() -> None:
    plain = parse_pipeline("name: t\nsource: {kafka: t}\nsink: console")

    assert "spark" in with_spark(plain, "spark://new:7077", []).model_fields_set


@pytest.mark.parametrize("given", ["spark.executor.memory", "=4g"])
def test_a_setting_without_name_or_value_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"spark\.executor\.memory=2g"):
        with_spark(WRITTEN, None, [given])
