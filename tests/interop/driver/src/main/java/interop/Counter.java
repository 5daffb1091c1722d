package interop;

import org.redisson.api.RAtomicLong;
import org.redisson.api.RedissonClient;

/** A number in Redis that nothing protects but the lock that is tried. */
final class Counter {
    private final RAtomicLong number;

    Counter(RedissonClient client, String name) {
        number = client.getAtomicLong("interop-counter:{" + name + "}");
    }

    void count() {
        number.set(number.get() + 1);
    }

    void watch() {
        long before = number.get();
        if (number.get() != before) {
            throw new IllegalStateException("somebody counted while somebody read");
        }
    }
}
