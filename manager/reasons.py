"""Why events are recorded: stable reasons, as tools that watch events rely on them.

On a pod:

| reason | type | the pod | when |
|---|---|---|---|
| InterfacesAssigned | Normal | is served | its list of interfaces is written: names, networks, addresses |
| NetworkNotFound | Warning | waits | a NAD or network that it names is not there |
| NetworkUnusable | Warning | waits | the NAD or network is there, but takes no pods: its own events say why |
| ForeignNetwork | Warning | waits | it names another plugin's NAD, and there is no meta plugin to serve it |
| AnnotationInvalid | Warning | is refused or waits | an annotation is malformed, or asks for what cannot be |
| NetworkForbidden | Warning | is refused | namespace isolation keeps it from that network |
| AddressUnavailable | Warning | is refused or waits | an address that it asks for can never be given, or not now |
| AddressesExhausted | Warning | waits | a network has no free address |
| MacAddressTaken | Warning | is refused or waits | another pod, or interface of the pod, has that MAC in that network |
| UidTaken | Warning | waits | another pod bears its uid |
| WriteRefused | Warning | waits | the server does not take its list: rights, quota, admission, size; tried again |
| NetworksChanged | Warning | stays as it is | its networks were changed after they were assigned |
| DefaultGatewayConflict | Warning | is served | two annotations ask for different default gateways |
| OverlappingNetworks | Warning | is served | two of its networks have addresses in common |

On a network attachment definition:

| reason | type | when |
|---|---|---|
| NetworkCreated | Normal | its network is made |
| NetworkInvalid | Warning | its annotations or its configuration are wrong: pods that name it wait |
| NetworkNameTaken | Warning | its network would bear the name of another one: pods that name it wait |
| NetworkNotFound | Warning | the network that it refers to is not there: pods that name it wait |
| NetworkForbidden | Warning | namespace isolation keeps it from the network that it refers to |
| NetworkStillInUse | Warning | made anew with other values while pods use the old network: waits for them to go |
| SubnetChangeRefused | Warning | its subnets were changed: the old ones stay |
| ReferenceChangeRefused | Warning | the network that it refers to was changed: the old one stays |

Problems that a source finds in what it reads bear reasons of the source's own.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The reasons of the table above."""

    INTERFACES_ASSIGNED = "InterfacesAssigned"
    NETWORK_NOT_FOUND = "NetworkNotFound"
    NETWORK_UNUSABLE = "NetworkUnusable"
    FOREIGN_NETWORK = "ForeignNetwork"
    ANNOTATION_INVALID = "AnnotationInvalid"
    NETWORK_FORBIDDEN = "NetworkForbidden"
    ADDRESS_UNAVAILABLE = "AddressUnavailable"
    ADDRESSES_EXHAUSTED = "AddressesExhausted"
    MAC_ADDRESS_TAKEN = "MacAddressTaken"
    UID_TAKEN = "UidTaken"
    WRITE_REFUSED = "WriteRefused"
    NETWORKS_CHANGED = "NetworksChanged"
    DEFAULT_GATEWAY_CONFLICT = "DefaultGatewayConflict"
    OVERLAPPING_NETWORKS = "OverlappingNetworks"
    NETWORK_CREATED = "NetworkCreated"
    NETWORK_INVALID = "NetworkInvalid"
    NETWORK_NAME_TAKEN = "NetworkNameTaken"
    NETWORK_STILL_IN_USE = "NetworkStillInUse"
    SUBNET_CHANGE_REFUSED = "SubnetChangeRefused"
    REFERENCE_CHANGE_REFUSED = "ReferenceChangeRefused"
