"""Who may come in: requests for one of the server's own names, with the token where there is one."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.types import Scope

from rationalizer.server.http_errors import Refused

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
# Whether the server lives, and the pages: they are the same everywhere, and a browser opens them without a token.
OPEN = frozenset({"/", "/docs", "/health", "/ready"})
OPEN_FOLDER = "/static/"


class Door:
    """Checks the headers `Host` and `Authorization`.

    A page of somebody else's can have its name lead to this machine (DNS rebinding), and the browser then takes the
    server for a part of it; but the request still says that name.

    Args:
        hosts: names that the server goes by, besides those of the machine itself. An address that stands for all of the
            machine's, 0.0.0.0 or ::, lets in any IP address (which no name can be made to look like); "*" anything.
        token: what requests must bring; None: nothing.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self.hosts = LOCAL.union(_name(host) for host in hosts)
        if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("a token is ASCII characters without spaces; make one by: openssl rand -hex 32")
        self.token = None if token is None else token.encode()

    def check(self, scope: Scope) -> None:
        """Refused where the request may not come in."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._knows(_name(host)):
            problem = f"this server does not answer for the host {host[:100]!r}"
            raise Refused(421, "Host", problem, "if the name is its own, start it with --allow-host and the name")
        path = scope["path"]
        if self.token is None or path in OPEN or path.startswith(OPEN_FOLDER):
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self.token):
            problem = "the token is wrong" if given else "the request has no token"
            raise Refused(401, "Authorization", problem, "send the header Authorization: Bearer TOKEN")

    def _knows(self, name: str) -> bool:
        return name in self.hosts or "*" in self.hosts or (bool(self.hosts & EVERYWHERE) and _is_address(name))


def _name(host: str) -> str:
    """A host without its port: of `[::1]:8000` ::1, of `Localhost:8000` localhost."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
