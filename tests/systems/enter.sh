#!/bin/sh
# Runs a command as a user of a root file system, in mount and PID namespaces that the caller made for it.
#   enter.sh ROOT USER COMMAND [FOLDER...]        FOLDERs of this machine are seen there, read-only
set -eu
root=$1 user=$2 command=$3
shift 3
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
for folder; do
    mkdir -p "./$folder"
    mount --bind "$folder" "./$folder"
    mount -o remount,bind,ro "./$folder"
done
mkdir -p outside
pivot_root . outside
umount -l /outside
# Process 1 is this shell: daemons that outlive the command end with it.
su - "$user" -c "$command"
