package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Operations on locks of all kinds. Times are in milliseconds; no lease is the watchdog. */
final class LockDoor {
    private final Command command;
    private final RLock lock;

    LockDoor(RedissonClient client, Command command) {
        this.command = command;
        List<String> names = command.texts("names");
        lock = names.isEmpty() ? Locks.open(client, command.text("kind"), command.text("name")) : Locks.all(client, names);
    }

    Object execute(String operation) throws Exception {
        long wait = command.number("wait", -1);
        long lease = command.number("lease", -1);
        return switch (operation) {
            case "lock" -> locked(lease);
            case "try" -> wait < 0 ? lock.tryLock() : lock.tryLock(wait, lease, MILLISECONDS);
            case "unlock" -> {
                lock.unlock();
                yield null;
            }
            case "lockFor" -> lock.lockAsync(command.number("owner")).toCompletableFuture().get();
            case "unlockFor" -> lock.unlockAsync(command.number("owner")).toCompletableFuture().get();
            case "isHeldFor" -> lock.isHeldByThread(command.number("owner"));
            case "pass" -> pass(command.number("millis"));
            case "force" -> lock.forceUnlock();
            case "isLocked" -> lock.isLocked();
            case "isHeld" -> lock.isHeldByCurrentThread();
            case "holdCount" -> lock.getHoldCount();
            case "remaining" -> lock.remainTimeToLive();
            case "delete" -> lock instanceof org.redisson.api.RObject object ? object.delete() : null;
            case "token" -> ((RFencedLock) lock).getToken();
            case "lockToken" -> ((RFencedLock) lock).lockAndGetToken();
            case "tryToken" -> ((RFencedLock) lock).tryLockAndGetToken(wait, lease, MILLISECONDS);
            case "threadId" -> Thread.currentThread().getId();
            default -> throw new IllegalArgumentException(operation);
        };
    }

    /** Acquires and tells when that was. */
    private Object locked(long lease) {
        lock.lock(lease, MILLISECONDS);
        return Clock.nanos();
    }

    /** Acquires, stays for a while, releases, and tells from when to when it was inside. */
    private Object pass(long millis) throws InterruptedException {
        lock.lock();
        long from = Clock.nanos();
        Thread.sleep(millis);
        long to = Clock.nanos();
        lock.unlock();
        return List.of(from, to);
    }
}
