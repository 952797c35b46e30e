/* The lock test: several processes that update one number under a lock, and are paused. As Jepsen tested etcd 3.4.3's lock
 * (https://jepsen.io/analyses/etcd-3.4.3, 2020): leases of two seconds, critical sections of up to two seconds, five
 * contenders, pauses every five seconds. */
#ifndef OVERSELL_LOADTEST_FAULTS_LOCK_TEST_H
#define OVERSELL_LOADTEST_FAULTS_LOCK_TEST_H

enum { LOCK_TEST_CONTENDERS = 5, LOCK_TEST_LEASE_MS = 2000 };

#endif
