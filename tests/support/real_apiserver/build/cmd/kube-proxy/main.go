// Command kube-proxy programs Services on a node, as k8s.io/kubernetes/cmd/kube-proxy makes it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() {
	os.Exit(cli.Run(app.NewProxyCommand()))
}
