"""The web site that a store's issues are on: one store holds what one server said.

Repository ids and names mean something on one server only, so a second one is refused.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from angle_data.errors import InputError
from angle_data.gis.comments.references import PUBLIC_HOSTS
from angle_data.gis.crawl.store import WEB, Store

PUBLIC_WEB = "https://github.com"
"""The site of GitHub itself."""

_SERVER = "server"


def site_of_store(store: Store) -> str:
    """Return the site of the store's issues, as noted by the crawl or as its first comment has it."""
    noted = store.meta(WEB)
    if noted is not None:
        return noted
    first = next(store.comments(), None)
    return (_site(first.url) if first is not None else "") or PUBLIC_WEB


def hosts_of(site: str) -> frozenset[str]:
    """Return the hosts (with the port where it is not the usual one) whose addresses lead to a site."""
    host = urlsplit(site).netloc
    return PUBLIC_HOSTS if host in PUBLIC_HOSTS else frozenset({host})


def note_site(store: Store, page: str) -> None:
    """Note the site of `page`, the address of a repository or issue that goes into the store.

    Raises:
        InputError: What the store holds is from another site.
    """
    site, noted = _site(page), store.meta(WEB)
    if noted is not None and site not in ("", noted):
        raise InputError(f"{store.path} holds issues of {noted}, and these are of {site}; give another --out")
    if noted is None and site:
        store.set_meta(WEB, site)


def check_server(store: Store, api_url: str) -> None:
    """Check that a crawl from `api_url` may go into the store.

    Raises:
        InputError: The store was crawled from another host.
    """
    noted = store.meta(_SERVER)
    if noted is not None and urlsplit(noted).hostname != urlsplit(api_url).hostname:
        raise InputError(f"{store.path} was crawled from {noted}; give another --out for {api_url}")


def note_server(store: Store, api_url: str) -> None:
    """Note that `api_url` has answered for the store."""
    if store.meta(_SERVER) != api_url:
        store.set_meta(_SERVER, api_url)


def _site(address: str) -> str:
    parts = urlsplit(address.lower())
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(port)}" if parts.netloc else ""
