package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.time.Duration;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Operations on semaphores. */
final class SemaphoreDoor {
    private final Command command;
    private final RSemaphore semaphore;

    SemaphoreDoor(RedissonClient client, Command command) {
        this.command = command;
        semaphore = client.getSemaphore(command.text("name"));
    }

    Object execute(String operation) throws Exception {
        return switch (operation) {
            case "acquire" -> {
                semaphore.acquire(n());
                yield Clock.nanos();
            }
            case "try" -> command.has("wait")
                    ? semaphore.tryAcquire(n(), command.number("wait"), MILLISECONDS)
                    : semaphore.tryAcquire(n());
            case "available" -> semaphore.availablePermits();
            case "drain" -> semaphore.drainPermits();
            case "trySet" -> semaphore.trySetPermits(n());
            case "expire" -> semaphore.expire(Duration.ofMillis(command.number("millis")));
            case "delete" -> semaphore.delete();
            default -> change(operation);
        };
    }

    private Object change(String operation) {
        switch (operation) {
            case "release" -> semaphore.release(n());
            case "add" -> semaphore.addPermits(n());
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private int n() {
        return (int) command.number("n", 1);
    }
}
