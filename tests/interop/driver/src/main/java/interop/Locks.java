package interop;

import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Makes the locks of Redisson by the names of their kinds. */
final class Locks {
    static RLock open(RedissonClient client, String kind, String name) {
        return switch (kind) {
            case "lock" -> client.getLock(name);
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "once" -> recent(client, "getNonReentrantLock", name);
            case "fair once" -> recent(client, "getNonReentrantFairLock", name);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /** A lock that the older versions do not have. */
    private static RLock recent(RedissonClient client, String method, String name) {
        try {
            return (RLock) RedissonClient.class.getMethod(method, String.class).invoke(client, name);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(method, e);
        }
    }

    /** All of several locks, in the order given. */
    static RLock all(RedissonClient client, List<String> names) {
        return client.getMultiLock(names.stream().map(client::getLock).toArray(RLock[]::new));
    }

    private Locks() {
    }
}
