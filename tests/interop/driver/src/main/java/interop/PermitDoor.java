package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.List;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** Operations on semaphores whose permits have leases. */
final class PermitDoor {
    private final Command command;
    private final RPermitExpirableSemaphore semaphore;

    PermitDoor(RedissonClient client, Command command) {
        this.command = command;
        semaphore = client.getPermitExpirableSemaphore(command.text("name"));
    }

    Object execute(String operation) throws Exception {
        return switch (operation) {
            case "acquire" -> acquire();
            case "try" -> semaphore.tryAcquire(n(), command.number("wait", 0), lease(), MILLISECONDS);
            case "tryRelease" -> semaphore.tryRelease(command.text("permit"));
            case "tryReleaseAll" -> semaphore.tryRelease(command.texts("permits"));
            case "available" -> semaphore.availablePermits();
            case "acquired" -> semaphore.acquiredPermits();
            case "permits" -> semaphore.getPermits();
            case "trySet" -> semaphore.trySetPermits(n());
            case "updateLease" -> semaphore.updateLeaseTime(command.text("permit"), lease(), MILLISECONDS);
            case "leaseTime" -> leaseTime();
            case "expire" -> semaphore.expire(Duration.ofMillis(command.number("millis")));
            case "delete" -> semaphore.delete();
            default -> change(operation);
        };
    }

    private List<String> acquire() throws InterruptedException {
        return lease() < 0 ? semaphore.acquire(n()) : semaphore.acquire(n(), lease(), MILLISECONDS);
    }

    private Object change(String operation) {
        switch (operation) {
            case "release" -> semaphore.release(command.text("permit"));
            case "releaseAll" -> semaphore.release(command.texts("permits"));
            case "set" -> semaphore.setPermits(n());
            case "add" -> semaphore.addPermits(n());
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    /** The method is younger than the oldest version that is tested. */
    private Object leaseTime() throws Exception {
        Method method = RPermitExpirableSemaphore.class.getMethod("getLeaseTime", String.class);
        try {
            return method.invoke(semaphore, command.text("permit"));
        } catch (java.lang.reflect.InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    private int n() {
        return (int) command.number("n", 1);
    }

    private long lease() {
        return command.number("lease", -1);
    }
}
