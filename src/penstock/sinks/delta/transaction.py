"""A commit of appended rows with the batch's number, made with Delta's transaction itself.

Delta's writer takes such a number too, but looks the old one up by reading the table's whole log, with
every batch; here it comes from the small file that Delta keeps beside each version. What is checked
when the commit is made is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import TransientError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# These are not Delta's public names: they are used with the version that was tried, and no other.
TRIED = "4.4.0"


def usable(spark: SparkSession) -> bool:
    """Whether the session has the Delta that this file knows."""
    jvm: Any = spark._jvm
    return str(jvm.io.delta.package.VERSION()) == TRIED


def append(log: Any, rows: DataFrame, application: str, version: int) -> None:
    """Add rows and the number in one commit, which fails when the application made another meanwhile."""
    spark = rows.sparkSession
    jvm: Any = spark._jvm
    none = jvm.scala.Option.empty()
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
    transaction = log.startTransaction(none, none)
    if _last(transaction, application) >= version:
        raise TransientError(f"another process wrote batch {application}~{version} just now")
    files = transaction.writeFiles(rows._jdf)
    now = jvm.scala.Option.apply(jvm.java.lang.System.currentTimeMillis())
    number = jvm.org.apache.spark.sql.delta.actions.SetTransaction(application, version, now)
    transaction.commit(files.appended(number), _operation(jvm, none))


def _last(transaction: Any, application: str) -> int:
    """Return the application's number, and let the commit fail if it changes until then."""
    numbers = known(transaction.snapshot())
    if numbers is None:
        return int(transaction.txnVersion(application))
    transaction.readTxn().addOne(application)
    return numbers.get(application, -1)


def known(snapshot: Any) -> dict[str, int] | None:
    """Return the numbers of all applications, or None where a version has no file of them."""
    beside = snapshot.checksumOpt()
    if beside.isEmpty() or beside.get().setTransactions().isEmpty():
        return None
    numbers = beside.get().setTransactions().get()
    found = (numbers.apply(at) for at in range(numbers.size()))
    return {str(number.appId()): int(number.version()) for number in found}


def _operation(jvm: Any, none: Any) -> Any:
    """What the table's history says of the commit."""
    write = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
    append_to = jvm.org.apache.spark.sql.SaveMode.Append
    return write(append_to, none, none, none, none, none, none, none, none)
