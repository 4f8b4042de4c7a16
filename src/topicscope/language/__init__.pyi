from .assignment import Assignment as Assignment, assign as assign, given_topics as given_topics
from .attention import (
    CHUNK as CHUNK,
    Window as Window,
    batches as batches,
    chunks as chunks,
    padded as padded,
    special_tokens as special_tokens,
    tally_attention as tally_attention,
)
from .cooccurrence import top_pairs as top_pairs
from .corpora import Corpus as Corpus, needed as needed
from .models import (
    LoadedModel as LoadedModel,
    attention_of as attention_of,
    load_model as load_model,
    load_tokenizer as load_tokenizer,
    quiet as quiet,
    shifted_right as shifted_right,
    word_vectors as word_vectors,
)
from .probe_run import (
    ProbeConfig as ProbeConfig,
    build_config as build_config,
    fit_corpus as fit_corpus,
    probe_settings as probe_settings,
    read_topics as read_topics,
    run_probe as run_probe,
    usable_device as usable_device,
)
from .probing import (
    THRESHOLDS as THRESHOLDS,
    Probe as Probe,
    Settings as Settings,
    assignments_of as assignments_of,
    probe as probe,
    probe_model as probe_model,
    unit as unit,
)
from .relations import TopicRelation as TopicRelation
from .timelines import find_checkpoints as find_checkpoints, timeline as timeline
from .topics import (
    BACKENDS as BACKENDS,
    PAIRS as PAIRS,
    Topics as Topics,
    best as best,
    coherence as coherence,
    fit_tomotopy as fit_tomotopy,
    fit_topics as fit_topics,
)
from .vocabulary import (
    Vocabulary as Vocabulary,
    encode as encode,
    read_stop_words as read_stop_words,
    whole_words as whole_words,
)
from .word_maps import WordMap as WordMap, word_map as word_map
