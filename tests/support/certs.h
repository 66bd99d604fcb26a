/* SPDX-License-Identifier: MIT */
/*
 * Certificates for a test's TLS servers and clients: good ones, and such with
 * one fault each. A child process makes them, so the library is the first in
 * the test program to use OpenSSL.
 *
 * ca, other-ca    authorities; "ca" has its hashed name in DIR/cas as well
 * intermediate    an authority, signed by "ca"
 * server          for localhost, 127.0.0.1 and ::1, signed by "ca"
 *
 * Like "server", but:
 * expired         since yesterday
 * expiring        in five days
 * not-yet-valid   before tomorrow
 * wrong-host      for elsewhere.example alone
 * long-names      for four names of more than 60 bytes
 * name-only       for localhost, and no address
 * cn-only         for localhost in the common name alone
 * self-signed
 * foreign         signed by "other-ca"
 * chained         signed by "intermediate", whose certificate is in the file
 * unchained       the same, but it is not in the file
 *
 * client          for a client, signed by "ca"
 * foreign-client  for a client, signed by "other-ca"
 * expired-client  for a client, since yesterday
 * locked-client   for a client; its key has the password CERTS_PASSWORD
 */
#ifndef NXLOCK_TEST_CERTS_H
#define NXLOCK_TEST_CERTS_H

#define CERTS_PASSWORD "open sesame"

/* Makes DIR/NAME.pem and DIR/NAME.key of each name, up to NULL, and the
 * authority that signs it unless it is there. A file that exists is replaced
 * by a new one of its name in one step, as a renewed certificate should be.
 * 0; or -1 in a fixture that is to be skipped, which the fixture returns,
 * because the tests were built without OpenSSL. Fails the test if it cannot. */
int certs_make(const char *dir, ...) __attribute__((sentinel));
int certs_make_all(const char *dir, const char *const *names);

#endif
