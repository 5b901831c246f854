# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Certificates of the tests' own, for servers on 127.0.0.1 and for their clients."""

import datetime
import ipaddress
import pathlib

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509

_DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority that has signed one certificate, for server and client alike.

    :ivar ca: file of its own certificate
    :ivar certificate: file of the other one, and ``key`` of its private key
    """

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir()
        own = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
        authority = _builder(name, name, own.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
                own, hashes.SHA256())
        key = ec.generate_private_key(ec.SECP256R1())
        signed = _builder(
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'tests')]), name,
            key.public_key()).add_extension(
                x509.SubjectAlternativeName([
                    x509.IPAddress(ipaddress.ip_address('127.0.0.1')),
                    x509.DNSName('localhost')]), critical=False).sign(own, hashes.SHA256())
        self.ca, self.certificate, self.key = (
            str(folder / f'{part}.pem') for part in ('ca', 'certificate', 'key'))
        for path, content in (
                (self.ca, authority.public_bytes(serialization.Encoding.PEM)),
                (self.certificate, signed.public_bytes(serialization.Encoding.PEM)),
                (self.key, key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption()))):
            pathlib.Path(path).write_bytes(content)


def _builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(),
                                   now - _DAY, now + _DAY)
