"""Selector: the objects of a kind that a list or watch returns."""

import msgspec


class Selector(msgspec.Struct, frozen=True):
    """Namespace (empty: all), label selector and field selector, in the API's syntax."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """Returns the selectors as query parameters."""
        given = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in given.items() if value}


EVERYTHING = Selector()
