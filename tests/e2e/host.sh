#!/bin/sh
# First process of a temporary host (see host.py): makes every folder private that this project or other software uses
# by a fixed path, prints "ready", and sleeps until it is killed. As process 1 it adopts orphaned processes. The argument
# is the folder below which tests have theirs.
set -eu

# Copies of what tests that run at the same time have mounted: they would vanish with their folders.
cut -d' ' -f5 /proc/self/mountinfo | tac | while read -r target; do
  case $target in "$1"/*) umount --lazy "$target" ;; esac
done
if mountpoint --quiet /run/netns; then
  umount --recursive --lazy /run/netns # keep no reference to network namespaces of others
fi
mount -t tmpfs -o mode=755 private /run
mount -t tmpfs -o mode=1777 private /dev/shm # podman's locks
for folder in /etc /opt /var/lib; do
  layers=/run/.host$folder
  mkdir -p "$layers/upper" "$layers/work"
  mount -t overlay -o "lowerdir=$folder,upperdir=$layers/upper,workdir=$layers/work" private "$folder"
done
# Empty folders instead of the real host's, which may have an installed plugin or networks of its runtimes. Those of this
# project are no mounts, so that tests can remove them.
for folder in /etc/contrail /var/lib/contrail; do
  rm -rf "$folder"
  mkdir "$folder"
done
for folder in /etc/cni /opt/cni /var/lib/cni /var/lib/containerd /var/lib/containers; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 private "$folder"
done
mkdir -p /etc/cni/net.d /opt/cni/bin /run/netns
mount --bind /run/netns /run/netns # as `ip netns` does at its first use
mount --make-shared /run/netns

echo ready
sleep infinity
