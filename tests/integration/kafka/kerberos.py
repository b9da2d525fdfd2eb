"""A real Kerberos key distribution centre (Debian's) on loopback, with a realm of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from penstock.embedded.ports import HOST, free_ports, is_open
from penstock.embedded.process import Child

REALM = "PENSTOCK.TEST"
PACKAGES = ("krb5-kdc", "krb5-admin-server")
PATH = f"{os.environ['PATH']}:/usr/sbin"


class Kdc:
    """Runs until `stop`; `keytab` makes a principal and gives the file with its key."""

    def __init__(self, folder: Path) -> None:
        need_programs()
        self.folder = folder
        self.config = folder / "krb5.conf"
        self.port = free_ports(1)[0]
        self._write_settings()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "only-for-this-test")
        command = ["env", *self._environment(), program("krb5kdc"), "-n", "-r", REALM]
        self._child = Child(command, log=folder / "kdc.log")
        self._child.wait_until(lambda: is_open(self.port), timeout=20, what="The KDC")

    def keytab(self, name: str) -> tuple[str, Path]:
        """Make a principal; give its whole name and its keytab."""
        principal = f"{name}@{REALM}"
        path = self.folder / f"{name.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return principal, path

    def stop(self) -> None:
        self._child.stop()

    def _write_settings(self) -> None:
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {HOST}:{self.port}\n }}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {HOST}:{self.port}\n"
            f" kdc_tcp_listen = {HOST}:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principals\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/kadm5.acl\n }}\n"
        )

    def _environment(self) -> list[str]:
        return [f"KRB5_CONFIG={self.config}", f"KRB5_KDC_PROFILE={self.folder / 'kdc.conf'}"]

    def _run(self, name: str, *arguments: str) -> None:
        command = ["env", *self._environment(), program(name), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=60)


def program(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found, f"{name} is missing: apt-get install {' '.join(PACKAGES)}"
    return found


def need_programs() -> None:
    """Install Debian's packages where they are missing and this user may."""
    if shutil.which("krb5kdc", path=PATH) and shutil.which("kadmin.local", path=PATH):
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
    subprocess.run([*apt, "update"], env=quiet, check=False, timeout=200)
    install = [*apt, "install", "--no-install-recommends", *PACKAGES]
    subprocess.run(install, env=quiet, check=False, timeout=250)
