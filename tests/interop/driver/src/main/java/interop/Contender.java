package interop;

import org.redisson.api.RedissonClient;

/** What one thread does in a contest: pass once, and say whether to go on. */
interface Contender {
    /** The weight of a stay that tolerates no other. */
    int ALONE = 1000;

    boolean pass() throws Exception;

    static Contender of(RedissonClient client, Command command, Diary diary) {
        String kind = command.text("kind");
        String name = command.text("name");
        long hold = command.number("hold", 0);
        return switch (kind) {
            case "rw" -> new Library(client, name, hold, diary);
            case "semaphore" -> new Pool(client, name, hold, diary);
            case "permit" -> new Lending(client, name, hold, diary);
            case "latch" -> new Meeting(client, name, command.count("parties"), command.number("until"));
            case "multi" -> new Pair(client, name, diary);
            case "fenced" -> new Ticketed(client, name, diary);
            default -> new Alone(client, kind, name, hold, diary);
        };
    }
}
