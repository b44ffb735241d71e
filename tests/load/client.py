"""One browser session without a browser: Streamlit's websocket protocol, page by page.

A client keeps what a browser keeps: the widgets on the page by their keys, the values that a person
gave them, the address, and the fragments that ask to be run again.  It draws nothing, which is why
twenty of them fit on two cores beside the server that they load.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

#: Seconds to wait for a text on the page or for a script to end.
PATIENCE = 180.0
WORDS = ("body", "text", "label", "title", "value", "help")


class Trouble(AssertionError):
    """The server answered with an exception, or not at all."""


class Client:
    """One person's tab.

    Parameters
    ----------
    address
        ``http://127.0.0.1:PORT`` of the server, or of a proxy in front of it.
    headers
        Sent with the handshake, such as cookies.
    query
        Query string of the address that was opened, such as ``project=...``.
    subprotocols
        ``streamlit``, then the token against forged requests that goes with the cookies.
    """

    def __init__(
        self,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        subprotocols: tuple[str, ...] = ("streamlit",),
        **settings: Any,
    ) -> None:
        self.address = address
        self.query = query
        self.widgets: dict[str, Any] = {}
        self.texts: list[str] = []
        self.pages: dict[str, str] = {}
        self.redirects: list[str] = []
        self.session = ""
        self._page = ""
        self._values: dict[str, WidgetState] = {}
        self._fragments: dict[str, float] = {}
        self._open = ExitStack()
        self._socket = self._open.enter_context(
            connect(
                f"{address.replace('http', 'ws', 1)}/_stcore/stream",
                subprotocols=list(subprotocols),
                additional_headers=dict(headers or {}),
                max_size=None,
                open_timeout=PATIENCE,
                **settings,
            )
        )
        self._rerun()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the tab."""
        self._open.close()

    # -- what a person does ----------------------------------------------------------------

    def go(self, page: str) -> None:
        """Follow the menu to a page by the path in its address."""
        self._page = self.pages[page]
        self._values = {}
        self._rerun()

    def click(self, key: str) -> None:
        """Press the button with this key."""
        self._rerun(WidgetState(id=self.widget(key).id, trigger_value=True))

    def tick(self, key: str) -> None:
        """Tick the checkbox with this key."""
        self._set(WidgetState(id=self.widget(key).id, bool_value=True))
        self._rerun()

    def fill(self, key: str, text: str) -> None:
        """Type into the field with this key; sent with the next click."""
        self._set(WidgetState(id=self.widget(key).id, string_value=text))

    def submit(self, label: str, *, times: int = 1) -> None:
        """Press the form's button whose label holds these words, in quick succession."""
        found = [
            widget
            for widget in self.widgets.values()
            if hasattr(widget, "is_form_submitter")
            and widget.is_form_submitter
            and label in widget.label
        ]
        if len(found) != 1:
            raise Trouble(f"{len(found)} form buttons say {label!r}")
        pressed = WidgetState(id=found[0].id, trigger_value=True)
        for _ in range(times - 1):
            self._ask(pressed)
            time.sleep(0.12)
        self._rerun(pressed)
        if times > 1:
            self.settle()

    def upload(self, key: str, name: str, content: bytes, *, wait: bool = True) -> int:
        """Put a file into the uploader with this key; returns the server's HTTP status."""
        identity = self.widget(key).id
        ask = BackMsg()
        ask.file_urls_request.request_id = uuid.uuid4().hex
        ask.file_urls_request.session_id = self.session
        ask.file_urls_request.file_names.append(name)
        self._send(ask)
        urls = self._until("file_urls_response").file_urls_response.file_urls[0]
        status = put_file(f"{self.address}{urls.upload_url}", name, content)
        if status < 300:
            state = WidgetState(id=identity)
            info = state.file_uploader_state_value.uploaded_file_info.add()
            info.file_id, info.name, info.size = urls.file_id, name, len(content)
            info.file_urls.CopyFrom(urls)
            self._set(state)
            if wait:
                self._rerun()
            else:
                self._ask()
        return status

    def take_out(self, key: str) -> None:
        """Take the file out of the uploader with this key, as its cross does."""
        state = WidgetState(id=self.widget(key).id)
        state.file_uploader_state_value.SetInParent()
        self._set(state)
        self._rerun()

    def download(self, key: str) -> tuple[str, bytes]:
        """Press a download button; returns the media address and what it holds."""
        url = self.deferred(self.widget(key).deferred_file_id)
        with urllib.request.urlopen(f"{self.address}{url}", timeout=PATIENCE) as answer:
            return url, answer.read()

    def deferred(self, file_id: str) -> str:
        """Have a download made by its id; returns its media address.

        Raises
        ------
        Trouble
            The server refused.
        """
        ask = BackMsg()
        request = ask.backend_operation_request
        request.request_id = uuid.uuid4().hex
        request.session_id = self.session
        request.deferred_file.file_id = file_id
        self._send(ask)
        answer = self._until("backend_operation_response").backend_operation_response
        if answer.error_msg or not answer.deferred_file.url:
            raise Trouble(f"no download: {answer.error_msg}")
        return str(answer.deferred_file.url)

    def again(self) -> None:
        """Have the page drawn again, after everything that was asked for before."""
        self._rerun()
        self.settle()

    def settle(self, seconds: float = 1.0) -> None:
        """Take what the server sends, until it has been silent for so long."""
        while True:
            try:
                self._parse(self._socket.recv(timeout=seconds))
            except TimeoutError:
                return

    def wait_for(self, *words: str, seconds: float = PATIENCE) -> str:
        """Run again what asks to be run again, until one of these texts is shown."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = next((word for word in words if self.says(word)), None)
            if found is not None:
                return found
            if not self._fragments:
                raise Trouble(f"nothing moves and none of {words} is shown: {self.texts[-12:]}")
            fragment, interval = next(iter(self._fragments.items()))
            time.sleep(interval)
            self._rerun(fragment=fragment)
        raise Trouble(f"none of {words} within {seconds:.0f} s: {self.texts[-12:]}")

    def says(self, words: str) -> bool:
        """Whether the page shows these words."""
        return any(words in text for text in self.texts)

    def widget(self, key: str) -> Any:
        """The widget with this key, as the page has it now."""
        found = [w for identity, w in self.widgets.items() if identity.endswith(f"-{key}")]
        if not found:
            raise Trouble(f"no widget {key!r} among {sorted(self.widgets)}: {self.texts[-8:]}")
        return found[-1]

    # -- the protocol ----------------------------------------------------------------------

    def _set(self, state: WidgetState) -> None:
        self._values[state.id] = state

    def _send(self, message: BackMsg) -> None:
        self._socket.send(message.SerializeToString())

    def _rerun(self, trigger: WidgetState | None = None, fragment: str = "") -> None:
        self._ask(trigger, fragment)
        self._until_the_script_ends()

    def _ask(self, trigger: WidgetState | None = None, fragment: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self.query
        state.page_script_hash = self._page
        state.fragment_id = fragment
        state.is_auto_rerun = bool(fragment)
        state.widget_states.widgets.extend(self._values.values())
        if trigger is not None:
            state.widget_states.widgets.append(trigger)
        self._send(message)

    def _receive(self, deadline: float) -> ForwardMsg:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Trouble(f"the server did not answer within {PATIENCE:.0f} s")
        try:
            data = self._socket.recv(timeout=left)
        except TimeoutError:
            raise Trouble(f"the server did not answer within {PATIENCE:.0f} s") from None
        return self._parse(data)

    def _parse(self, data: str | bytes) -> ForwardMsg:
        message = ForwardMsg()
        message.ParseFromString(data)
        self._take(message)
        return message

    def _until(self, kind: str) -> ForwardMsg:
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._receive(deadline)
            if message.WhichOneof("type") == kind:
                return message

    def _until_the_script_ends(self) -> None:
        while True:
            message = self._until("script_finished")
            if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                raise Trouble("the script does not compile")
            if message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            session = message.new_session
            self.session = session.initialize.session_id or self.session
            self._page = session.page_script_hash or self._page
            if not message.metadata.run.fragment_ids:  # the whole page is drawn anew
                self._fragments.clear()
                self.widgets.clear()
            self.texts.clear()
        elif kind == "navigation":
            self.pages = {
                "start" if page.is_default else page.url_pathname: page.page_script_hash
                for page in message.navigation.app_pages
            }
            self._page = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self._fragments[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._fragments.pop(fragment, None)
        elif kind == "auth_redirect":
            self.redirects.append(message.auth_redirect.url)
        elif kind == "delta":
            self._take_element(message)

    def _take_element(self, message: ForwardMsg) -> None:
        if message.delta.WhichOneof("type") != "new_element":
            return
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind is None:
            return
        inner = getattr(element, kind)
        if kind == "exception":
            raise Trouble(f"the page shows {inner.type}: {inner.message}")
        identity = getattr(inner, "id", "")
        if isinstance(identity, str) and identity:
            self.widgets[identity] = inner
        for name in WORDS:
            words = getattr(inner, name, "")
            if isinstance(words, str) and words:
                self.texts.append(words)


def put_file(url: str, name: str, content: bytes) -> int:
    """Send one file as a browser does; returns the HTTP status."""
    mark = uuid.uuid4().hex
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
    cookie, token = forgery_token(url)
    request = urllib.request.Request(
        url,
        data=body,
        method="PUT",
        headers={
            "Content-Type": f"multipart/form-data; boundary={mark}",
            "Cookie": cookie,
            "X-Xsrftoken": token,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def forgery_token(url: str) -> tuple[str, str]:
    """Cookie and token against forged requests, as any page of the server sets them."""
    base = "/".join(url.split("/")[:3])
    with urllib.request.urlopen(f"{base}/_stcore/health", timeout=PATIENCE) as answer:
        cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
    return cookie, cookie.partition("=")[2]
