"""What PostgreSQL's catalog is asked: tables, keys, sequences, and the transactions that are running."""

from __future__ import annotations

TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY 1, 2
"""

# Arrays, with the types of their elements.
ARRAYS = "SELECT typarray, oid FROM pg_type WHERE typarray = ANY(%s::oid[])"

PRIMARY_KEY = """
SELECT a.attname FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indisprimary AND i.indrelid = to_regclass(%s) ORDER BY k.place
"""

# The table, the partitions above and below it, and the sequences of its defaults and identity columns.
_FAMILY = """
WITH RECURSIVE up(oid) AS (
  SELECT to_regclass(%s)::oid
  UNION SELECT inhparent FROM pg_inherits JOIN up ON inhrelid = up.oid
), family(oid) AS (
  SELECT oid FROM up UNION SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid
), sequences(oid) AS (
  SELECT d.objid FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
  WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid IN (SELECT oid FROM family)
  UNION
  SELECT d.refobjid FROM pg_attrdef a
  JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
  JOIN pg_class c ON c.oid = d.refobjid AND c.relkind = 'S'
  WHERE d.refclassid = 'pg_class'::regclass AND a.adrelid IN (SELECT oid FROM family)
)
"""

CACHES = (
    _FAMILY
    + """
SELECT q.seqrelid::regclass::text, q.seqcache FROM pg_sequence q JOIN sequences s ON s.oid = q.seqrelid
WHERE q.seqcache > 1 ORDER BY 1 LIMIT 1
"""
)

# One row with a null for a view or a foreign table, whose writers cannot be seen, and for a table without
# a sequence of its own: who has taken a number holds no lock on the table before the INSERT.
WRITERS = (
    _FAMILY  # noqa: S608 - all constant
    + """
SELECT DISTINCT l.virtualtransaction FROM pg_locks l
WHERE l.locktype = 'relation' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
  AND l.relation IN (SELECT oid FROM family UNION SELECT oid FROM sequences)
  AND EXISTS (SELECT 1 FROM pg_class WHERE oid IN (SELECT oid FROM up) AND relkind IN ('r', 'p'))
  AND EXISTS (SELECT 1 FROM sequences)
UNION ALL
SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM sequences) OR NOT EXISTS (
  SELECT 1 FROM pg_class WHERE oid IN (SELECT oid FROM up) AND relkind IN ('r', 'p'))
"""
)

# Every transaction holds a lock on its own virtual number from its start. Vacuum has no user.
TRANSACTIONS = """
SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()
  AND a.datname = current_database() AND a.usesysid IS NOT NULL
UNION
SELECT l.virtualtransaction FROM pg_locks l JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
WHERE l.locktype = 'transactionid' AND l.pid IS NULL AND p.database = current_database()
"""

# Of the table and its partitions; about a hundred bytes for a row of one that was never analyzed.
ABOUT_ROWS = """
WITH RECURSIVE family(oid) AS (
  SELECT to_regclass(%s)::oid
  UNION SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid
)
SELECT coalesce(sum(CASE WHEN c.relkind = 'p' THEN 0 WHEN c.reltuples >= 0 AND c.relpages > 0
  THEN c.reltuples * greatest(1, pg_relation_size(c.oid) / 8192.0 / c.relpages)
  ELSE pg_relation_size(c.oid) / 100 END), 0)::bigint
FROM pg_class c JOIN family USING (oid) WHERE c.relkind IN ('r', 'p', 'm')
"""

SERVER = "SELECT system_identifier, current_database() FROM pg_control_system()"
