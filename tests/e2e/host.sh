#!/bin/sh
# First process of a throw-away machine (see machine.py): makes every folder private that our parts or their peers know
# by a fixed path, says that it is ready, and then waits for its end, burying whatever loses its parent.
set -eu

if mountpoint --quiet /run/netns; then
  umount --recursive --lazy /run/netns # others' network namespaces must not live on in here
fi
mount -t tmpfs -o mode=755 private /run
mount -t tmpfs -o mode=1777 private /dev/shm # podman's locks
for folder in /etc /opt /var/lib; do
  layers=/run/.machine$folder
  mkdir -p "$layers/upper" "$layers/work"
  mount -t overlay -o "lowerdir=$folder,upperdir=$layers/upper,workdir=$layers/work" private "$folder"
done
# What the real machine has there would be found too: an installed plugin, networks of its runtimes.
for folder in /etc/cni /etc/contrail /opt/cni /var/lib/cni /var/lib/containerd /var/lib/containers /var/lib/contrail; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 private "$folder"
done
mkdir -p /etc/cni/net.d /opt/cni/bin /run/netns
mount --bind /run/netns /run/netns # as `ip netns` makes it when it is first used
mount --make-shared /run/netns

echo ready
sleep infinity
