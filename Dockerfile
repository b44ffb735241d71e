# Justitia's workbench: one process, no root, nothing written but the store.
# The base is named by tag; docs/deploy.md says how to hold it to a digest.

FROM python:3.11-slim-bookworm AS build
WORKDIR /build
COPY requirements.lock .
# Wheels only, each of them the one whose hash the lock names: nothing is compiled here.
RUN python -m venv /opt/justitia \
    && /opt/justitia/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes --only-binary=:all: --requirement requirements.lock \
    && /opt/justitia/bin/python -m pip uninstall --yes --disable-pip-version-check \
        pip setuptools

FROM python:3.11-slim-bookworm AS run
RUN groupadd --gid 10001 justitia \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/justitia --shell /usr/sbin/nologin \
        justitia \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/lib/justitia \
    && rm -rf /usr/local/lib/python3.11/site-packages/* /usr/local/lib/python3.11/ensurepip \
        /usr/local/bin/pip* /usr/local/bin/wheel
COPY --from=build /opt/justitia /opt/justitia
WORKDIR /srv/justitia
COPY app.py LICENSE ./
COPY .streamlit/config.toml .streamlit/config.toml
COPY core core
COPY pages pages
COPY docs/published-statistics.md docs/published-statistics.md
RUN /opt/justitia/bin/python -m compileall -q core pages

ENV PATH=/opt/justitia/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/var/lib/justitia \
    JUSTITIA_HOME=/var/lib/justitia \
    JUSTITIA_MODE=shared \
    OMP_NUM_THREADS=1 \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true
USER 10001:10001
VOLUME ["/var/lib/justitia"]
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "streamlit", "run", "app.py"]
