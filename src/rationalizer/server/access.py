"""Access control: which hosts the server answers for, and the bearer token."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Message, Scope

from rationalizer.server.http_errors import RequestError

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})
# Open without a token: the liveness checks, and the page's files, which hold no data and which a browser opens without
# the header.
PUBLIC_PATHS = frozenset({"/", "/docs", "/annotate/", "/health", "/ready"})
PUBLIC_FOLDERS = ("/static/", "/annotate/static/")


class AccessControl:
    """Check the headers `Host` and `Authorization` of a request.

    The check of `Host` prevents DNS rebinding: a foreign page may resolve its own name to this machine's address, but
    the browser still sends that name. Starlette's `TrustedHostMiddleware` checks names, this class IP addresses.

    Args:
        hosts: accepted names and addresses besides localhost. 0.0.0.0 or :: (all interfaces) accepts any IP address,
            which no foreign page can use as its name; "*.example.com" all subdomains; "*" everything.
        token: the bearer token that requests must send; None: no token is needed.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self._hosts = LOCAL_HOSTS.union(map(_without_port, hosts))
        for host in self._hosts:
            if "*" in host and (host.count("*") > 1 or not (host == "*" or host.startswith("*."))):
                raise ValueError(f"host {host!r}: write a name, '*.name' for its subdomains, or '*' for any host")
        names = ["*"] if "*" in self._hosts else [f"{host}{dot}" for host in self._hosts for dot in ("", ".")]
        self._names = TrustedHostMiddleware(_accept, names, www_redirect=False)
        if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("the token must be ASCII characters without spaces. Create one with: openssl rand -hex 32")
        self._token = None if token is None else token.encode()

    async def check(self, scope: Scope) -> None:
        """Raise `RequestError` if the request is not allowed."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not await self._is_trusted(host, scope):
            problem = f"this server does not answer for the host {host[:100]!r}"
            raise RequestError(421, "Host", problem, "if the name is the server's own, start it with --allow-host NAME")
        path = scope["path"]
        if self._token is None or path in PUBLIC_PATHS or path.startswith(PUBLIC_FOLDERS):
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            problem = "the token is wrong" if token else "the request has no token"
            raise RequestError(401, "Authorization", problem, "send the header Authorization: Bearer TOKEN")

    async def _is_trusted(self, host: str, scope: Scope) -> bool:
        name = _without_port(host)
        if _is_address(name) and (name in self._hosts or self._hosts & ANY_ADDRESS):
            return True
        rejections: list[Message] = []

        async def record(message: Message) -> None:
            rejections.append(message)

        headers = [(b"host", host.lower().encode("latin-1"))]  # Starlette before 0.39 compares the case
        await self._names({**scope, "type": "http", "headers": headers}, _receive_nothing, record)
        return not rejections


async def _accept(*_: object) -> None:
    """The application behind Starlette's middleware, which answers rejected requests itself."""


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _without_port(host: str) -> str:
    """Return the host of a `Host` header: "::1" for "[::1]:8000", "localhost" for "Localhost:8000"."""
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
