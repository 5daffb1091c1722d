// Package interop proves that Latchkey and the released Redisson share locks,
// semaphores and latches. Its tests start a small Java program, in driver/, which
// does with Redisson what they request, and use the same names with this library
// at the same time.
//
// The tests need Java 17, Maven, and what Maven downloads. Without these they skip
// and say so. The program is built once for each version of Redisson and
// kept in the user's cache directory.
//
//	LATCHKEY_TEST_REDISSON=4.7.0        the versions to test against, separated by commas
//	LATCHKEY_TEST_INTEROP_TIME=5m       how long each contest lasts, with more processes
//	LATCHKEY_TEST_SHARES=20s            how long shares of mixed fleets are measured, in more fleets
package interop
