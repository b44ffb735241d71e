"""One file a page; routed by ``st.navigation`` in ``app.py``, never run on their own."""
