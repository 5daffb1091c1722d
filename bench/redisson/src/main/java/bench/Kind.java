package bench;

import java.util.concurrent.ThreadLocalRandom;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** A kind of lock in a contended workload. The capacity is how much of it may be held at once. */
enum Kind {
    EXCLUSIVE(1) {
        @Override
        Held acquire(RedissonClient client, String key) {
            return exclusive(client.getLock(key), 1);
        }
    },
    FAIR(1) {
        @Override
        Held acquire(RedissonClient client, String key) {
            return exclusive(client.getFairLock(key), 1);
        }
    },
    READ_WRITE(1 << 20) {
        @Override
        Held acquire(RedissonClient client, String key) {
            if (ThreadLocalRandom.current().nextInt(20) == 0) {
                return exclusive(client.getReadWriteLock(key).writeLock(), capacity);
            }
            return exclusive(client.getReadWriteLock(key).readLock(), 1);
        }
    },
    SEMAPHORE(8) {
        @Override
        void prepare(RedissonClient client, String key) {
            client.getSemaphore(key).trySetPermits((int) capacity);
        }

        @Override
        Held acquire(RedissonClient client, String key) throws InterruptedException {
            RSemaphore semaphore = client.getSemaphore(key);
            semaphore.acquire();
            return new Held(semaphore::release, 1);
        }
    };

    /** What a caller holds: how to release it, and how much of the lock it is. */
    record Held(Runnable release, long part) {
    }

    final long capacity;

    Kind(long capacity) {
        this.capacity = capacity;
    }

    void prepare(RedissonClient client, String key) {
    }

    abstract Held acquire(RedissonClient client, String key) throws InterruptedException;

    private static Held exclusive(RLock lock, long part) {
        lock.lock();
        return new Held(lock::unlock, part);
    }
}
