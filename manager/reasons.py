"""Event reasons: stable identifiers, since tools that watch events rely on them.

On a pod:

| reason | type | state of the pod | when |
|---|---|---|---|
| InterfacesAssigned | Normal | ready | its list of interfaces is written: names, networks, addresses |
| NetworkNotFound | Warning | waiting | a NAD or network that it names does not exist |
| NetworkUnusable | Warning | waiting | the NAD or network exists but accepts no pods: its own events say why |
| ForeignNetwork | Warning | waiting | it names a NAD of another plugin, and no meta plugin is configured |
| AnnotationInvalid | Warning | refused or waiting | an annotation is malformed, or requests the impossible |
| NetworkForbidden | Warning | refused | namespace isolation denies it that network |
| AddressUnavailable | Warning | refused or waiting | a requested address can never be allocated, or not now |
| AddressesExhausted | Warning | waiting | a network has no free address |
| MacAddressTaken | Warning | refused or waiting | another pod, or interface of the pod, has that MAC in the network |
| UidTaken | Warning | waiting | another pod has its uid |
| WriteRefused | Warning | waiting | the server rejects its list: permissions, quota, admission, size; retried |
| StoreFailing | Warning | waiting | the store fails for it, repeatedly or for over 5 s: the message says how; retried |
| NetworksChanged | Warning | unchanged | its networks were changed after they were assigned |
| DefaultGatewayConflict | Warning | ready | two annotations request different default gateways |
| OverlappingNetworks | Warning | ready | two of its networks have addresses in common |

On a network attachment definition:

| reason | type | when |
|---|---|---|
| NetworkCreated | Normal | its network is created |
| NetworkNotRouted | Warning | it has pods on many nodes, and subnets without a gateway keep it from becoming l3 |
| NetworkInvalid | Warning | its annotations or its configuration are invalid: pods that name it wait |
| NetworkNameTaken | Warning | another network already has the name of its network: pods that name it wait |
| NetworkNotFound | Warning | the network that it refers to does not exist: pods that name it wait |
| NetworkForbidden | Warning | namespace isolation denies it the network that it refers to |
| NetworkStillInUse | Warning | recreated with other values while pods use the old network: waits until they are gone |
| SubnetChangeRefused | Warning | its subnets were changed: the old ones stay |
| ReferenceChangeRefused | Warning | the network that it refers to was changed: the old one stays |
| SubnetRefused | Warning | a node gives a subnet of its network no route: the message says why |
| NetworkNotConnected | Warning | a node does not connect its network: the message says why |

The last two are also on the Namespace of an isolated namespace's network, and on VirtualNetworks of neither.

On a node, by its name as uid, as the events of its kubelet:

| reason | type | when |
|---|---|---|
| TunnelMtuTooLow | Warning | its tunnels take far less than those of most nodes: the default MTU leaves it out |
| KernelModuleMissing | Warning | its kernel lacks a module that the datapath needs: it takes no pods |
| NodeConflict | Warning | another program, or another agent, takes the place of this project's on it |

Problems that a source finds in its input have reasons of the source.
"""

from enum import StrEnum


class Reason(StrEnum):
    """The reasons of the tables above."""

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
    STORE_FAILING = "StoreFailing"
    NETWORKS_CHANGED = "NetworksChanged"
    DEFAULT_GATEWAY_CONFLICT = "DefaultGatewayConflict"
    OVERLAPPING_NETWORKS = "OverlappingNetworks"
    NETWORK_CREATED = "NetworkCreated"
    NETWORK_ROUTED = "NetworkRouted"
    NETWORK_NOT_ROUTED = "NetworkNotRouted"
    NETWORK_INVALID = "NetworkInvalid"
    NETWORK_NAME_TAKEN = "NetworkNameTaken"
    NETWORK_STILL_IN_USE = "NetworkStillInUse"
    SUBNET_CHANGE_REFUSED = "SubnetChangeRefused"
    REFERENCE_CHANGE_REFUSED = "ReferenceChangeRefused"
    SUBNET_REFUSED = "SubnetRefused"
    NETWORK_NOT_CONNECTED = "NetworkNotConnected"
    TUNNEL_MTU_TOO_LOW = "TunnelMtuTooLow"
    KERNEL_MODULE_MISSING = "KernelModuleMissing"
    NODE_CONFLICT = "NodeConflict"
