"""The JAAS line of the Java client, so that users need not write one."""

from __future__ import annotations

from collections.abc import Mapping

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
# Java reads the line with a StreamTokenizer: a raw line end would end the quoted text.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def jaas_line(mechanism: str, options: Mapping[str, str | bool]) -> str:
    r"""Write the line for a mechanism; texts are quoted, flags are not.

    >>> print(jaas_line("GSSAPI", {"useKeyTab": True, "principal": 'a"b\\c'}))
    com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true principal="a\"b\\c";
    """
    words = [_MODULES[mechanism], "required"]
    words += [f"{name}={_value(value)}" for name, value in options.items()]
    return " ".join(words) + ";"


def _value(value: str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value.translate(_ESCAPES)}"'
