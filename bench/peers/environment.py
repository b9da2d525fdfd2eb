"""An environment of its own for a peer: it may want other versions of what we use."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from penstock.config.directories import cache_dir


def python(peer: str) -> Path:
    """Give the interpreter of the peer's environment, made when it is missing."""
    requirements = Path(__file__).with_name(f"{peer}-requirements.txt")
    key = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    home = cache_dir() / "peers" / f"{peer}-{key}"
    interpreter = home / "bin" / "python"
    if not (home / ".complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements]
        subprocess.run(install, check=True)
        (home / ".complete").touch()
    return interpreter
