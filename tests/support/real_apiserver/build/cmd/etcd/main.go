// Command etcd keeps what the API server stores, as go.etcd.io/etcd/server makes it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
