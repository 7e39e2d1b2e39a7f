"""kube-manager: watches pods and network attachment definitions and writes every pod's ordered list of interfaces."""
