"""Downloads that are still there when the browser fetches them.

A download is made when its button is pressed, and fetched by a request of its own.  In between,
Streamlit forgets it as soon as the pages of two other visitors have run (it counts the file as
nobody's).  Here the visitor's own session holds it until its page runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx


def held(make: Callable[[], bytes], file: str, mime: str, key: str) -> Callable[[], bytes]:
    """The same download, held for the session whose page is being drawn.

    Parameters
    ----------
    make
        Serialises the artefact.
    file, mime, key
        Name and media type of the file, and the button's key.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not exists():
        return make

    def made() -> bytes:
        content = make()

        def hold() -> None:
            get_instance().media_file_mgr.add(
                content, mime, f"download.{key}", file_name=file, is_for_static_download=True
            )

        # Files are held for the session of the thread that adds them.
        thread = Thread(target=hold, name="justitia-download")
        add_script_run_ctx(thread, context)
        thread.start()
        thread.join()
        return content

    return made
