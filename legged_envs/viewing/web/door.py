"""Who may talk to the page: requests of its own origin with the token of its address.

A browser lets any web page that is open in it send requests to this machine. Without these checks,
every such page could drive the robots and load files.
"""

import hmac
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from websockets.asyncio import server as websocket_server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names of this machine in the header ``Host``. Another name is one that somebody else's server
gave to the address of this machine."""

TOKEN_PARAMETER = "token"
"""Name of the parameter of the address that holds the token."""

COOKIE = "legged-envs-token"
"""First part of the name of the cookie by which a browser shows the token again."""

ACCEPTED_MESSAGES = ("GuiUpdateMessage", "ViewerCameraMessage", "SceneNodeDragMessage")
"""Types of the messages of a browser that the page needs. Others, such as an upload of a file or
the request to send the page through a server of others, are dropped."""

LARGEST_MESSAGE = 2**16
"""Largest size of a message of a browser, bytes. The page sends some hundreds."""

LONGEST_TEXT = 4096
"""Largest number of characters of a text in a message."""

LONGEST_LIST = 32
"""Largest number of items of a list in a message."""

LARGEST_INTEGER = 2**53
"""Largest integer in a message: JavaScript has no larger exact one."""

Answer = Callable[[ServerConnection, Request], Response | None]
"""Function of a server that answers the request for a file. None: the request opens a channel."""


class Door:
    """Decides which requests reach the server of the page.

    Args:
        port: Port of the page.
        token: Secret of the printed address. None: there is none.
    """

    def __init__(self, port: int, token: str | None):
        self.token = token
        """Secret of the printed address. None: there is none."""
        self.is_used = False
        """True once a server asks this door."""
        # Cookies do not depend on the port: two pages of one machine have one each.
        self._cookie = f"{COOKIE}-{port}"

    def find_refusal(self, request: Request) -> str | None:
        """Return why a request is refused, None if it is accepted."""
        host = _single_header(request, "Host")
        name = _name_of(host)
        if name not in LOCAL_NAMES:
            return f"the page is at localhost, not at {name!r}: open the printed address"
        origins = request.headers.get_all("Origin")
        # Programs that are no browsers send no origin.
        if origins and origins != [f"http://{host}"]:
            return "another web page may not use this one: open the printed address"
        if not self._has_token(request):
            return "the address lacks its token: open the whole printed address"
        return None

    def _has_token(self, request: Request) -> bool:
        if self.token is None:
            return True
        given = parse_qs(urlsplit(request.path).query).get(TOKEN_PARAMETER, [])
        for cookies in request.headers.get_all("Cookie"):
            for cookie in cookies.split(";"):
                name, _, value = cookie.strip().partition("=")
                if name == self._cookie:
                    given.append(value)
        expected = self.token.encode()
        for each in given:
            # Bytes that are no text stand in a header as surrogates.
            guess = each.encode(errors="replace")
            # The time that a comparison takes must not tell how much of a guess is right.
            if hmac.compare_digest(guess, expected):
                return True
        return False

    def check(self, answer: Answer) -> Answer:
        """Return a function that answers accepted requests like ``answer``, and refuses others."""

        def answer_accepted(connection: ServerConnection, request: Request) -> Response | None:
            refusal = self.find_refusal(request)
            if refusal is not None:
                return connection.respond(HTTPStatus.FORBIDDEN, f"legged-envs: {refusal}\n")
            response = answer(connection, request)
            if response is not None and self.token is not None:
                response.headers["Set-Cookie"] = (
                    f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                )
                # The address with the token goes to no other server.
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return answer_accepted

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let the server that is started in the block ask this door.

        Raises:
            RuntimeError: If the server that was started did not.
        """
        # viser has no parameter for checks of requests, but makes its server by this function.
        original = websocket_server.serve

        def serve(handler: Any, host: Any, port: Any, **options: Any) -> Any:
            self.is_used = True
            options["process_request"] = self.check(options["process_request"])
            options["max_size"] = LARGEST_MESSAGE
            options["create_connection"] = CheckedConnection
            return original(handler, host, port, **options)

        websocket_server.serve = serve  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            websocket_server.serve = original  # type: ignore[misc]
        if not self.is_used:
            raise RuntimeError(
                "this version of viser starts its server in another way, so nothing would check "
                "who uses the page: pip install 'viser==1.1.1'"
            )


class CheckedConnection(ServerConnection):
    """A channel to a browser that drops messages that the page does not send."""

    async def recv(self, decode: bool | None = None) -> Any:
        """Return the next message that the page can send."""
        while True:
            data = await super().recv(decode)
            if is_page_message(data):
                return data


def is_page_message(data: object) -> bool:
    """Return True if the bytes are a message of :data:`ACCEPTED_MESSAGES` with plain values."""
    if not isinstance(data, bytes):
        return False
    try:
        message = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError):
        return False
    if not isinstance(message, dict) or message.get("type") not in ACCEPTED_MESSAGES:
        return False
    if not _is_plain(message):
        return False
    if message["type"] == "GuiUpdateMessage":
        # Any attribute of a control could be set otherwise, such as its callbacks.
        updates = message.get("updates")
        return isinstance(updates, dict) and updates.keys() == {"value"}
    return True


def _is_plain(value: object) -> bool:
    """Return True for texts, bools, finite numbers and short lists and dicts of them."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int):
        return abs(value) <= LARGEST_INTEGER
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if isinstance(value, list):
        return len(value) <= LONGEST_LIST and all(map(_is_plain, value))
    if isinstance(value, dict):
        return len(value) <= LONGEST_LIST and all(map(_is_plain, [*value, *value.values()]))
    return False


def _name_of(host: str | None) -> str | None:
    """Return the name in a header ``Host``, None if there is none."""
    try:
        return urlsplit(f"//{host}").hostname if host else None
    except ValueError:  # Such as a bracket that is not closed.
        return None


def _single_header(request: Request, name: str) -> str | None:
    """Return the value of a header, None if the request has none or several."""
    values = request.headers.get_all(name)
    return values[0] if len(values) == 1 else None
