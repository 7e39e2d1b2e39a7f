"""Which objects of a kind a list or a watch is about."""

import msgspec


class Selector(msgspec.Struct, frozen=True):
    """Of one namespace (empty: of all), by label and field selectors as the API writes them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """The selectors as parameters of a request."""
        asked = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in asked.items() if value}


EVERYTHING = Selector()
