package interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/** The Redisson clients that are open, by the names that the Go side gave them. */
final class Clients {
    private final Map<String, RedissonClient> open = new ConcurrentHashMap<>();

    RedissonClient get(String name) {
        RedissonClient client = open.get(name);
        if (client == null) {
            throw new IllegalStateException("no client " + name);
        }
        return client;
    }

    Object execute(String operation, Command command) {
        String name = command.text("client");
        switch (operation) {
            case "open" -> open.put(name, Redisson.create(config(command)));
            case "close" -> open.remove(name).shutdown(0, 5, TimeUnit.SECONDS);
            case "id" -> {
                return ((Redisson) get(name)).getId();
            }
            default -> throw new IllegalArgumentException(operation);
        }
        return null;
    }

    private static Config config(Command command) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setThreads(4);
        config.setNettyThreads(4);
        Settings.apply(command.object("settings"), config, servers(config, command));
        return config;
    }

    /** The settings for the servers; of all topologies they have common names, so that a setting finds its place. */
    private static Object servers(Config config, Command command) {
        if (command.has("cluster")) {
            return small(config.useClusterServers().addNodeAddress(command.text("cluster")).setScanInterval(1000));
        }
        if (command.has("sentinels")) {
            return small(config.useSentinelServers().addSentinelAddress(command.texts("sentinels").toArray(String[]::new))
                    .setMasterName(command.text("masterName")).setScanInterval(1000));
        }
        return config.useSingleServer().setAddress(command.text("address"))
                .setConnectionMinimumIdleSize(2).setConnectionPoolSize(32);
    }

    /** Queries go to masters: of replicas they may be late, which is no matter here. */
    private static Object small(BaseMasterSlaveServersConfig<?> servers) {
        return servers.setReadMode(ReadMode.MASTER)
                .setMasterConnectionMinimumIdleSize(2).setMasterConnectionPoolSize(32)
                .setSlaveConnectionMinimumIdleSize(2).setSlaveConnectionPoolSize(32);
    }
}
