"""GitHub or an archive in, the crawl store out."""
