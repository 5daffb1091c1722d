package interop;

import org.redisson.api.RedissonClient;

/** Finds what executes a command: the word before the dot in its "op" says which object it is for. */
final class Doors {
    private final Clients clients;

    Doors(Clients clients) {
        this.clients = clients;
    }

    Object execute(Command command) throws Exception {
        String[] words = command.text("op").split("\\.");
        String object = words[0];
        String operation = words[1];
        if (object.equals("client")) {
            return clients.execute(operation, command);
        }
        RedissonClient client = clients.get(command.text("client"));
        return switch (object) {
            case "lock" -> new LockDoor(client, command).execute(operation);
            case "semaphore" -> new SemaphoreDoor(client, command).execute(operation);
            case "permit" -> new PermitDoor(client, command).execute(operation);
            case "latch" -> new LatchDoor(client, command).execute(operation);
            case "contest" -> new Contest(client, command).run();
            default -> throw new IllegalArgumentException(object);
        };
    }
}
