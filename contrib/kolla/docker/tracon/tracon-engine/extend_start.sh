#!/bin/bash

if [[ ! -d "/var/log/kolla/tracon" ]]; then
    mkdir -p /var/log/kolla/tracon
fi
if [[ $(stat -c %a /var/log/kolla/tracon) != "755" ]]; then
    chmod 755 /var/log/kolla/tracon
fi

# Bootstrap and exit if KOLLA_BOOTSTRAP variable is set. This catches all cases
# of the KOLLA_BOOTSTRAP variable being set, including empty.
if [[ "${!KOLLA_BOOTSTRAP[@]}" ]]; then
    tracon db upgrade --config-file /etc/tracon/tracon.conf
    exit 0
fi
