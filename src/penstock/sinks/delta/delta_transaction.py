"""Commits of numbers, with or without appended rows, made with Delta's transaction itself.

Delta's writer takes a number too, but only one, and looks the old one up by reading the table's whole
log, with every batch; here it comes from the small file that Delta writes with each version. What is
checked when the commit is made is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# These are not Delta's public names: they are used with the version that was tried, and no other.
TRIED = "4.4.0"


def usable(spark: SparkSession) -> bool:
    """Return whether the session has the Delta that this file knows."""
    jvm: Any = spark._jvm
    return str(jvm.io.delta.package.VERSION()) == TRIED


class Transaction:
    """One commit to be. It fails when a number that was read here was committed by another meanwhile."""

    def __init__(self, spark: SparkSession, log: Any) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._none = jvm.scala.Option.empty()
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
        self._transaction = log.startTransaction(self._none, self._none)

    def numbers(self) -> dict[str, int]:
        """Return the numbers of all applications in the version that the commit is made on."""
        return numbers_of(self._jvm, self._transaction.snapshot())

    def depend_on(self, applications: Iterable[str]) -> None:
        """Let the commit fail if the number of one of these changes until then."""
        for application in applications:
            self._transaction.readTxn().addOne(application)

    def commit(self, numbers: Mapping[str, int], rows: DataFrame | None = None) -> None:
        """Commit the numbers, and the rows if there are any."""
        actions = self._nothing() if rows is None else self._transaction.writeFiles(rows._jdf)
        now = self._jvm.scala.Option.apply(self._jvm.java.lang.System.currentTimeMillis())
        set_number = self._jvm.org.apache.spark.sql.delta.actions.SetTransaction
        for application, number in numbers.items():
            actions = actions.appended(set_number(application, number, now))
        self._transaction.commit(actions, self._operation())

    def _nothing(self) -> Any:
        convert = self._jvm.scala.jdk.javaapi.CollectionConverters
        return convert.asScala(self._jvm.java.util.ArrayList()).toSeq()

    def _operation(self) -> Any:
        """Return the commit's operation for the table's history."""
        write = getattr(self._jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
        append = self._jvm.org.apache.spark.sql.SaveMode.Append
        return write(append, *[self._none] * 8)


def numbers_of(jvm: Any, snapshot: Any) -> dict[str, int]:
    """Return the numbers of all applications, from the version's checksum file if it has them."""
    checksum = snapshot.checksumOpt()
    if checksum.isEmpty() or checksum.get().setTransactions().isEmpty():
        return all_numbers_of(jvm, snapshot)
    numbers = checksum.get().setTransactions().get()
    each = (numbers.apply(at) for at in range(numbers.size()))
    return {str(number.appId()): int(number.version()) for number in each}


def all_numbers_of(jvm: Any, snapshot: Any) -> dict[str, int]:
    """Return the numbers of all applications, from the table's whole state."""
    kept = jvm.scala.jdk.javaapi.CollectionConverters.asJava(snapshot.transactions())
    return {str(name): int(version) for name, version in kept.items()}
