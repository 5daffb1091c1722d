package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;

/** Operations on latches. */
final class LatchDoor {
    private final Command command;
    private final RCountDownLatch latch;

    LatchDoor(RedissonClient client, Command command) {
        this.command = command;
        latch = client.getCountDownLatch(command.text("name"));
    }

    Object execute(String operation) throws Exception {
        return switch (operation) {
            case "trySet" -> latch.trySetCount(command.number("n"));
            case "countDown" -> {
                latch.countDown();
                yield null;
            }
            case "count" -> latch.getCount();
            case "await" -> latch.await(command.number("wait"), MILLISECONDS);
            case "delete" -> latch.delete();
            default -> throw new IllegalArgumentException(operation);
        };
    }
}
