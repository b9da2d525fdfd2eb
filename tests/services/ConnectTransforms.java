// Applies the transforms of Apache Kafka Connect to records: one JSON document in, one out, on each line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

public class ConnectTransforms {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonConverter WITH = converter(true);
    static final JsonConverter WITHOUT = converter(false);
    static final SimpleHeaderConverter HEADERS = new SimpleHeaderConverter();

    static JsonConverter converter(boolean schemas) {
        JsonConverter made = new JsonConverter();
        made.configure(
            Map.of("schemas.enable", String.valueOf(schemas), "replace.null.with.default", "false"), false);
        return made;
    }

    public static void main(String[] args) throws Exception {
        HEADERS.configure(Map.of("converter.type", "header"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            JsonNode reply = asked.has("class") ? checked(asked) : transformed(asked);
            out.println(JSON.writeValueAsString(reply));
        }
    }

    static Map<String, String> texts(JsonNode node) {
        Map<String, String> made = new LinkedHashMap<>();
        node.fields().forEachRemaining(e -> made.put(e.getKey(), e.getValue().asText()));
        return made;
    }

    static ObjectNode failure(Throwable error) {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        made.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        return made;
    }

    static JsonNode checked(JsonNode asked) throws Exception {
        Object plugin = Class.forName(asked.get("class").asText()).getDeclaredConstructor().newInstance();
        Map<String, String> config = texts(asked.get("config"));
        ConfigDef keys = plugin instanceof Transformation
            ? ((Transformation<?>) plugin).config() : ((Predicate<?>) plugin).config();
        ObjectNode reply = JsonNodeFactory.instance.objectNode();
        ArrayNode errors = reply.putArray("errors");
        for (ConfigValue value : keys.validate(config)) value.errorMessages().forEach(errors::add);
        try {
            ((org.apache.kafka.common.Configurable) plugin).configure(config);
        } catch (Throwable error) {
            reply.put("configure", String.valueOf(error.getMessage()));
        }
        return reply;
    }

    static class Step {
        Transformation<SinkRecord> transform;
        Predicate<SinkRecord> predicate;
        boolean negate;

        SinkRecord apply(SinkRecord record) {
            if (predicate != null && predicate.test(record) == negate) return record;
            return transform.apply(record);
        }
    }

    static Map<String, String> below(Map<String, String> config, String prefix) {
        Map<String, String> made = new HashMap<>();
        config.forEach((key, value) -> {
            if (key.startsWith(prefix)) made.put(key.substring(prefix.length()), value);
        });
        return made;
    }

    @SuppressWarnings("unchecked")
    static <T> T plugin(Map<String, String> config) throws Exception {
        T made = (T) Class.forName(config.get("type")).getDeclaredConstructor().newInstance();
        ((org.apache.kafka.common.Configurable) made).configure(config);
        return made;
    }

    static List<Step> chain(Map<String, String> config) throws Exception {
        List<Step> steps = new ArrayList<>();
        for (String name : config.get("transforms").split(",")) {
            Map<String, String> own = below(config, "transforms." + name + ".");
            Step step = new Step();
            String predicate = own.remove("predicate");
            step.negate = Boolean.parseBoolean(own.remove("negate"));
            step.transform = plugin(own);
            if (predicate != null) step.predicate = plugin(below(config, "predicates." + predicate + "."));
            steps.add(step);
        }
        return steps;
    }

    static JsonNode transformed(JsonNode asked) {
        ArrayNode replies = JsonNodeFactory.instance.arrayNode();
        List<Step> steps;
        try {
            steps = chain(texts(asked.get("config")));
        } catch (Throwable error) {
            return failure(error);
        }
        for (JsonNode record : asked.get("records")) {
            try {
                SinkRecord made = record(record);
                for (Step step : steps) if (made != null) made = step.apply(made);
                replies.add(made == null ? JsonNodeFactory.instance.nullNode() : written(made));
            } catch (Throwable error) {
                replies.add(failure(error));
            }
        }
        return replies;
    }

    static SchemaAndValue read(JsonNode part) throws Exception {
        boolean schemas = part.has("schema");
        JsonNode document = schemas ? part : part.get("payload");
        if (part.get("payload").isNull()) return SchemaAndValue.NULL;
        return (schemas ? WITH : WITHOUT).toConnectData("t", JSON.writeValueAsBytes(document));
    }

    static SinkRecord record(JsonNode given) throws Exception {
        SchemaAndValue key = read(given.get("key"));
        SchemaAndValue value = read(given.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : given.get("headers")) {
            byte[] bytes = header.get(1).isNull() ? null : header.get(1).asText().getBytes(StandardCharsets.UTF_8);
            headers.add(header.get(0).asText(), HEADERS.toConnectHeader("t", header.get(0).asText(), bytes));
        }
        Long time = given.get("timestamp").isNull() ? null : given.get("timestamp").asLong();
        return new SinkRecord(
            given.get("topic").asText(), given.get("partition").asInt(), key.schema(), key.value(),
            value.schema(), value.value(), given.get("offset").asLong(), time,
            time == null ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME, headers);
    }

    static JsonNode written(SinkRecord record) throws Exception {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        made.put("topic", record.topic());
        made.set("key", part(record.keySchema(), record.key()));
        made.set("value", part(record.valueSchema(), record.value()));
        ArrayNode headers = made.putArray("headers");
        for (Header header : record.headers()) {
            byte[] bytes = HEADERS.fromConnectHeader("t", header.key(), header.schema(), header.value());
            headers.addArray().add(header.key())
                .add(bytes == null ? null : new String(bytes, StandardCharsets.UTF_8));
        }
        return made;
    }

    static JsonNode part(Schema schema, Object value) throws Exception {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        if (schema == null) {
            made.set("payload", plain(value));
            return made;
        }
        try {
            return JSON.readTree(WITH.fromConnectData("t", schema, value));
        } catch (Throwable error) {
            made.put("unwritten", error.getClass().getSimpleName() + ": " + error.getMessage());
            return made;
        }
    }

    static JsonNode plain(Object value) {
        if (value instanceof Map) {
            ObjectNode made = JsonNodeFactory.instance.objectNode();
            ((Map<?, ?>) value).forEach((key, each) -> made.set(String.valueOf(key), plain(each)));
            return made;
        }
        if (value instanceof List) {
            ArrayNode made = JsonNodeFactory.instance.arrayNode();
            ((List<?>) value).forEach(each -> made.add(plain(each)));
            return made;
        }
        if (value instanceof java.util.Date) {
            ObjectNode made = JsonNodeFactory.instance.objectNode();
            made.put("$moment", ((java.util.Date) value).getTime());
            return made;
        }
        return JSON.valueToTree(value);
    }
}
